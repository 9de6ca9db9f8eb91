// SPDX-License-Identifier: Apache-2.0

package script

import (
	"os"
	"strings"
	"testing"
)

// Section checks that a page says between two comments what got says, so that a
// table in a guide stays what the code does. The comments are
//
//	<!-- name: written by a test; run it with -update -->
//	<!-- end of name -->
//
// With -update the section is rewritten.
func Section(t *testing.T, page, name, got string) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(b), "\r\n", "\n")
	begin := "<!-- " + name + ": written by a test; run it with -update -->\n"
	before, rest, ok := strings.Cut(text, begin)
	if !ok {
		t.Fatalf("%s has no line %q", page, strings.TrimSpace(begin))
	}
	end := "<!-- end of " + name + " -->\n"
	was, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no line %q", page, strings.TrimSpace(end))
	}
	got = strings.TrimRight(got, "\n") + "\n"
	switch {
	case was == got:
	case *update:
		if err := os.WriteFile(page, []byte(before+begin+got+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s, %s: %s", page, name, difference(was, got))
	}
}
