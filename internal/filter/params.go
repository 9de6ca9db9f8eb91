// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strings"

	"github.com/triagemq/triagemq/internal/filter/value"
)

// Params are the values of the @names of an expression. The key may be written
// with or without the @.
type Params map[string]value.Value

// lookup finds name, which has no @, ignoring case when no key is spelled so.
func (p Params) lookup(name string) (value.Value, bool) {
	if v, ok := p["@"+name]; ok {
		return v, true
	}
	if v, ok := p[name]; ok {
		return v, true
	}
	// Keys that differ only in case would make the answer depend on the order of
	// the map; the smallest spelling wins.
	found, best := value.Value{}, ""
	for key, v := range p {
		if k := strings.TrimPrefix(key, "@"); strings.EqualFold(k, name) && (best == "" || key < best) {
			found, best = v, key
		}
	}
	return found, best != ""
}
