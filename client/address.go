// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/triagemq/triagemq/internal/address"
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
func parseAddress(text string) (target, error) {
	a, err := address.Parse(text)
	if err != nil {
		return target{}, fmt.Errorf("%w: %w", ErrAddress, err)
	}
	t, err := targetOf(a)
	if err != nil {
		return target{}, fmt.Errorf("%w: %w", ErrAddress, err)
	}
	return t, nil
}

// targetOf chooses the transport and the credentials for an address. A connection
// string must have some.
func targetOf(a address.Address) (target, error) {
	t := target{scheme: a.Scheme, name: a.Name, path: webSocketPath, user: a.User, pass: a.Password}
	take := t.takeConnectionString
	if a.URL {
		take = t.takeURL
	}
	if err := take(a); err != nil {
		return target{}, err
	}
	t.host = a.HostPort(defaultPorts[t.scheme])
	return t, nil
}

func (t *target) takeURL(a address.Address) error {
	switch a.Scheme {
	case "amqp", "amqps":
		t.entity = strings.Trim(a.Path, "/")
	case "ws", "wss":
		if a.Path != "" && a.Path != "/" {
			t.path = a.Path
		}
	case "sb":
		t.scheme, t.entity = "amqps", strings.Trim(a.Path, "/")
	default:
		return fmt.Errorf("scheme %q is none of amqp, amqps, ws, wss, sb", a.Scheme)
	}
	return nil
}

func (t *target) takeConnectionString(a address.Address) error {
	t.entity, t.signature = a.Entity, a.Signature
	switch {
	case a.Signature != "":
	case (a.KeyName == "") != (a.Key == ""):
		return errors.New("SharedAccessKeyName and SharedAccessKey go together")
	case a.Key == "":
		return errors.New("no SharedAccessKey and no SharedAccessSignature in the connection string")
	default:
		t.keyName, t.key = a.KeyName, a.Key
	}
	if a.WebSocket {
		t.scheme = map[string]string{"amqp": "ws", "amqps": "wss"}[t.scheme]
	}
	return nil
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
