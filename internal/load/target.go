// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"fmt"

	"github.com/triagemq/triagemq/internal/address"
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
	a, err := address.Parse(text)
	if err != nil {
		return Target{}, fmt.Errorf("load: %w", err)
	}
	t := Target{Host: a.Hostname(), User: cmp.Or(a.KeyName, a.User), Password: cmp.Or(a.Key, a.Password)}
	switch a.Scheme {
	case "amqp":
		t.Address = a.HostPort("5672")
	case "amqps":
		t.Address, t.TLS = a.HostPort("5671"), true
	default:
		return Target{}, fmt.Errorf("load: scheme %q is neither amqp nor amqps", a.Scheme)
	}
	return t, nil
}
