// SPDX-License-Identifier: Apache-2.0

package filter

import "testing"

func TestLike(t *testing.T) {
	for _, tt := range []struct {
		s, pattern, escape string
		want               bool
	}{
		{"", "", "", true}, {"a", "", "", false}, {"", "%", "", true}, {"", "_", "", false}, {"abc", "abc", "", true}, {"abc", "ab", "", false},
		{"abc", "a%", "", true}, {"abc", "%c", "", true}, {"abc", "%b%", "", true}, {"abc", "%%", "", true}, {"abc", "b%", "", false},
		{"abc", "a_c", "", true}, {"abc", "___", "", true}, {"abc", "__", "", false}, {"abc", "_%_", "", true}, {"ab", "_%_%_", "", false},
		{"grüße", "gr__e", "", true}, {"grüße", "gr_e", "", false}, {"a%c", "a!%c", "!", true}, {"abc", "a!%c", "!", false}, {"a_c", "a!_c", "!", true},
		{"a!c", "a!!c", "!", true}, {"abc", "a!bc", "!", true}, {"100%", "%!%", "!", true}, {"100", "%!%", "!", false},
		{"aXbXc", "a%X%c", "", true}, {"aaaab", "%a%a%b", "", true}, {"mississippi", "m%iss%pi", "", true}, {"mississippi", "m%isx%pi", "", false},
		{"ab", "a%b%", "", true}, {"x%", "x%%", "%", true}, {"xy", "x%%", "%", false}, {"a\nb", "a_b", "", true}, {"abab", "%ab", "", true},
	} {
		e := env{steps: defaultSteps}
		p, ok := compilePattern(tt.pattern, tt.escape)
		if got := e.match(tt.s, &p); !ok || got != tt.want {
			t.Errorf("%q LIKE %q ESCAPE %q: %v, %v, want %v", tt.s, tt.pattern, tt.escape, got, ok, tt.want)
		}
		if got := e.like(tt.s, pieces{text: tt.pattern, escape: escapeRune(tt.escape)}); got != tt.want {
			t.Errorf("cut as it goes, %q LIKE %q ESCAPE %q: %v, want %v", tt.s, tt.pattern, tt.escape, got, tt.want)
		}
	}
	if ok, err := parse(t, "'a' LIKE Priority ESCAPE 'h'").Match(sample()); ok || err != nil {
		t.Errorf("a pattern that ends in its escape character: %v, %v", ok, err)
	}
}
