// SPDX-License-Identifier: Apache-2.0

package address

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Address is what such a text says.
type Address struct {
	// Scheme is that of a URL, in lower case. A connection string means amqps, or amqp
	// with UseDevelopmentEmulator.
	Scheme    string
	URL       bool   // the text is a URL
	WebSocket bool   // a connection string asks for WebSockets
	Name      string // the host as it is written, with the port if there is one
	Path      string // of a URL
	Entity    string // EntityPath of a connection string

	KeyName, Key   string // of a connection string
	Signature      string // a ready token, of a connection string
	User, Password string // of a URL

	hostname, port string // as url.URL separates them
}

// Parse reads a connection string or a URL.
func Parse(text string) (Address, error) {
	text = strings.TrimSpace(text)
	if scheme, _, ok := strings.Cut(text, "://"); ok && !strings.Contains(scheme, "=") {
		return parseURL(text)
	}
	return parseConnectionString(text)
}

// Hostname returns the host without its port and without brackets.
func (a Address) Hostname() string { return a.hostname }

// HostPort returns what to dial. The port applies if the address has none.
func (a Address) HostPort(port string) string {
	return net.JoinHostPort(a.hostname, cmp.Or(a.port, port))
}

func parseURL(text string) (Address, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Address{}, hideUserinfo(err)
	}
	a := Address{Scheme: strings.ToLower(u.Scheme), URL: true, Path: u.Path}
	if u.User != nil {
		a.User = u.User.Username()
		a.Password, _ = u.User.Password()
	}
	return a.at(u)
}

func parseConnectionString(text string) (Address, error) {
	fields, err := splitFields(text)
	if err != nil {
		return Address{}, err
	}
	endpoint, ok := fields["endpoint"]
	if !ok {
		return Address{}, errors.New("no Endpoint in the connection string")
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return Address{}, hideUserinfo(err)
	}
	a := Address{
		Scheme:    "amqps",
		WebSocket: strings.EqualFold(fields["transporttype"], "AmqpWebSockets"),
		Entity:    strings.Trim(fields["entitypath"], "/"),
		KeyName:   fields["sharedaccesskeyname"],
		Key:       fields["sharedaccesskey"],
		Signature: fields["sharedaccesssignature"],
	}
	if emulator, err := strconv.ParseBool(fields["usedevelopmentemulator"]); err == nil && emulator {
		a.Scheme = "amqp"
	}
	return a.at(u)
}

// splitFields reads Key=Value;Key=Value. Keys are case-blind, and values may
// contain further equal signs, as base64 does.
func splitFields(text string) (map[string]string, error) {
	fields := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			// The part is not shown: it may be a piece of a key.
			return nil, errors.New("neither a URL nor a connection string of Key=Value;… parts")
		}
		fields[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
	}
	return fields, nil
}

func (a Address) at(u *url.URL) (Address, error) {
	if u.Hostname() == "" {
		return Address{}, fmt.Errorf("no host in %q", u.Redacted())
	}
	a.Name, a.hostname, a.port = u.Host, u.Hostname(), u.Port()
	return a, nil
}

// hideUserinfo keeps the address, which may contain a password, out of the error.
func hideUserinfo(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
