// SPDX-License-Identifier: Apache-2.0

package access

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Rights is a set of claims.
type Rights uint8

// The claims. Manage implies the other two.
const (
	Send Rights = 1 << iota
	Listen
	Manage
)

// All is every right there is.
const All = Send | Listen | Manage

var claims = []struct {
	right Rights
	name  string
}{{Send, "Send"}, {Listen, "Listen"}, {Manage, "Manage"}}

// Has reports whether r includes every claim of want. Manage implies the
// others.
func (r Rights) Has(want Rights) bool {
	if r&Manage != 0 {
		r = All
	}
	return r&want == want
}

// String lists the claims, as error texts and files spell them.
func (r Rights) String() string { return strings.Join(r.names(), ",") }

func (r Rights) names() []string {
	names := []string{}
	for _, c := range claims {
		if r&c.right != 0 {
			names = append(names, c.name)
		}
	}
	return names
}

// parseRights reads a list of claims, in any case.
func parseRights(names []string) (Rights, error) {
	var r Rights
next:
	for _, name := range names {
		for _, c := range claims {
			if strings.EqualFold(strings.TrimSpace(name), c.name) {
				r |= c.right
				continue next
			}
		}
		return 0, fmt.Errorf("%w: right %q is none of Send, Listen, Manage", errInvalid, name)
	}
	return r, nil
}

// MarshalJSON writes the claims as a list of names.
func (r Rights) MarshalJSON() ([]byte, error) { return json.Marshal(r.names()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Rights) UnmarshalJSON(b []byte) error {
	var names []string
	if err := json.Unmarshal(b, &names); err != nil {
		return err
	}
	parsed, err := parseRights(names)
	*r = parsed
	return err
}
