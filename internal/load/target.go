// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Target is where a broker is and how to log in there.
type Target struct {
	Address string // host:port
	Host    string // as the broker knows itself
	TLS     bool
	// User and Password are for SASL PLAIN; without a user the login is
	// anonymous.
	User, Password string
}

// ParseTarget reads a URL (amqp://user:password@host:port) or a connection string
// (Endpoint=sb://…;SharedAccessKeyName=…;SharedAccessKey=…). A rule's name and key
// serve as user and password.
func ParseTarget(text string) (Target, error) {
	if scheme, _, ok := strings.Cut(text, "://"); ok && !strings.Contains(scheme, "=") {
		return parseURL(text)
	}
	return parseConnectionString(text)
}

func parseURL(text string) (Target, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Target{}, errors.New("load: the address is not a URL") // the text may contain a password: do not print it
	}
	t := Target{TLS: u.Scheme == "amqps"}
	if u.Scheme != "amqp" && u.Scheme != "amqps" {
		return Target{}, fmt.Errorf("load: scheme %q is neither amqp nor amqps", u.Scheme)
	}
	if u.User != nil {
		t.User = u.User.Username()
		t.Password, _ = u.User.Password()
	}
	return t.at(u)
}

func parseConnectionString(text string) (Target, error) {
	t := Target{TLS: true}
	var endpoint string
	for part := range strings.SplitSeq(text, ";") {
		key, value, _ := strings.Cut(part, "=")
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "endpoint":
			endpoint = value
		case "sharedaccesskeyname":
			t.User = value
		case "sharedaccesskey":
			t.Password = value
		case "usedevelopmentemulator":
			t.TLS = !strings.EqualFold(value, "true")
		}
	}
	if endpoint == "" {
		return Target{}, errors.New("load: neither a URL nor a connection string with an Endpoint")
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return Target{}, errors.New("load: the Endpoint is not a URL")
	}
	return t.at(u)
}

func (t Target) at(u *url.URL) (Target, error) {
	if u.Hostname() == "" {
		return Target{}, errors.New("load: the address has no host")
	}
	port := u.Port()
	switch {
	case port != "":
	case t.TLS:
		port = "5671"
	default:
		port = "5672"
	}
	t.Host, t.Address = u.Hostname(), net.JoinHostPort(u.Hostname(), port)
	return t, nil
}
