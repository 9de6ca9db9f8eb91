// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// target is where to connect and how to show who we are.
type target struct {
	scheme string // amqp, amqps, ws or wss
	host   string // host:port to dial
	name   string // as the peer knows itself: the endpoint, port included if given
	path   string // of a WebSocket
	entity string // EntityPath or the URL's path; the default entity

	// One of these: a key to make tokens with, a ready token, or user and
	// password for SASL PLAIN. None means anonymous.
	keyName, key string
	signature    string
	user, pass   string
}

// webSocketPath is where Service Bus and our broker take WebSockets.
const webSocketPath = "/$servicebus/websocket"

// defaultPorts are the well-known ports of the schemes.
var defaultPorts = map[string]string{"amqp": "5672", "amqps": "5671", "ws": "80", "wss": "443"}

// parseAddress reads a connection string or a URL.
func parseAddress(address string) (target, error) {
	address = strings.TrimSpace(address)
	parse := parseConnectionString
	if scheme, _, ok := strings.Cut(address, "://"); ok && !strings.Contains(scheme, "=") {
		parse = parseURL
	}
	t, err := parse(address)
	if err != nil {
		return target{}, fmt.Errorf("%w: %w", ErrAddress, err)
	}
	return t, nil
}

// tokens reports whether the peer wants a token for each entity.
func (t target) tokens() bool { return t.key != "" || t.signature != "" }

// secure reports whether the bytes go through TLS.
func (t target) secure() bool { return t.scheme == "amqps" || t.scheme == "wss" }

// audience is what a token for the entity at path is good for.
func (t target) audience(path string) string {
	scheme := "amqp"
	if t.secure() {
		scheme = "amqps"
	}
	return scheme + "://" + t.name + "/" + path
}

func parseURL(address string) (target, error) {
	u, err := url.Parse(address)
	if err != nil {
		return target{}, hideUserinfo(err)
	}
	t := target{scheme: strings.ToLower(u.Scheme), name: u.Host, path: webSocketPath}
	switch t.scheme {
	case "amqp", "amqps":
		t.entity = strings.Trim(u.Path, "/")
	case "ws", "wss":
		if u.Path != "" && u.Path != "/" {
			t.path = u.Path
		}
	case "sb":
		t.scheme, t.entity = "amqps", strings.Trim(u.Path, "/")
	default:
		return target{}, fmt.Errorf("scheme %q is none of amqp, amqps, ws, wss, sb", u.Scheme)
	}
	if u.User != nil {
		t.user = u.User.Username()
		t.pass, _ = u.User.Password()
	}
	return t.withHost(u)
}

func parseConnectionString(text string) (target, error) {
	t := target{path: webSocketPath, scheme: "amqps"}
	fields, err := splitFields(text)
	if err != nil {
		return target{}, err
	}
	endpoint, ok := fields["endpoint"]
	if !ok {
		return target{}, fmt.Errorf("no Endpoint in the connection string")
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return target{}, hideUserinfo(err)
	}
	t.keyName, t.key = fields["sharedaccesskeyname"], fields["sharedaccesskey"]
	t.signature, t.entity = fields["sharedaccesssignature"], strings.Trim(fields["entitypath"], "/")
	switch {
	case t.signature != "":
		t.keyName, t.key = "", ""
	case (t.keyName == "") != (t.key == ""):
		return target{}, fmt.Errorf("SharedAccessKeyName and SharedAccessKey go together")
	case t.key == "":
		return target{}, fmt.Errorf("no SharedAccessKey and no SharedAccessSignature in the connection string")
	}
	if emulator, err := strconv.ParseBool(fields["usedevelopmentemulator"]); err == nil && emulator {
		t.scheme = "amqp"
	}
	if strings.EqualFold(fields["transporttype"], "AmqpWebSockets") {
		t.scheme = map[string]string{"amqp": "ws", "amqps": "wss"}[t.scheme]
	}
	return t.withHost(u)
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
			return nil, fmt.Errorf("neither a URL nor a connection string of Key=Value;… parts")
		}
		fields[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
	}
	return fields, nil
}

func (t target) withHost(u *url.URL) (target, error) {
	if u.Hostname() == "" {
		return target{}, fmt.Errorf("no host in %q", u.Redacted())
	}
	port := u.Port()
	if port == "" {
		port = defaultPorts[t.scheme]
	}
	t.name, t.host = u.Host, net.JoinHostPort(u.Hostname(), port)
	return t, nil
}

// hideUserinfo keeps the address, which may hold a password, out of the error.
func hideUserinfo(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
