// SPDX-License-Identifier: Apache-2.0

package wire

import "testing"

// A peer must not gain a right by the way it writes an address: what the broker
// is asked for is what was checked.
func FuzzAddress(f *testing.F) {
	f.Add("q")
	f.Add("amqps://h/q/%2e%2e/r")
	f.Add("/Q/$Management")
	f.Add("t/SUBSCRIPTIONS/s/$Transfer/$DeadLetterQueue")
	f.Fuzz(func(t *testing.T, addr string) {
		path := PathOf(addr)
		if again := PathOf(path); again != path {
			t.Fatalf("%q is checked as %q and resolved as %q", addr, path, again)
		}
	})
}
