// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"errors"
	"slices"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

// An attach with long lists of symbols is
// rejected before memory is allocated for them.
func TestSymbolsAreFew(t *testing.T) {
	lists := map[string]func(*Attach, []string){
		"outcomes":            func(a *Attach, s []string) { a.Source = &Source{Outcomes: s} },
		"source capabilities": func(a *Attach, s []string) { a.Source = &Source{Capabilities: s} },
		"target capabilities": func(a *Attach, s []string) { a.Target = &Target{Capabilities: s} },
		"offered":             func(a *Attach, s []string) { a.OfferedCapabilities = s },
		"desired":             func(a *Attach, s []string) { a.DesiredCapabilities = s },
	}
	for name, set := range lists {
		for _, n := range []int{MaxSymbols, MaxSymbols + 1} {
			a := Attach{Name: "l"}
			set(&a, slices.Repeat([]string{"x"}, n))
			_, fields, _, err := Parse(a.Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			var got Attach
			got.Decode(&fields)
			if bad := errors.Is(fields.Err(), errSymbols); bad != (n > MaxSymbols) {
				t.Errorf("%d %s: %v", n, name, fields.Err())
			}
		}
	}
	// An array of as many nulls is none of symbols.
	nulls := []byte{0xe0, 2, 200, 0x40}
	r := codec.NewReader(nulls)
	if list := symbols(&r); list != nil || r.Err() == nil {
		t.Errorf("200 nulls are %d symbols, %v", len(list), r.Err())
	}
}
