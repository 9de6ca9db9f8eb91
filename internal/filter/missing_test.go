// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
)

func TestGaps(t *testing.T) {
	for _, tt := range []struct {
		sql  string
		want string // the condition with every gap mended; empty: there is none
	}{
		{"plan = 'paid' AND kind <> 'report'", "plan = 'paid' AND (kind IS NULL OR kind <> 'report')"},
		{"kind <> 'a' AND kind <> 'b'", "(kind IS NULL OR kind <> 'a') AND (kind IS NULL OR kind <> 'b')"},
		{"kind NOT IN ('a', 'b')", "(kind IS NULL OR kind NOT IN ('a', 'b'))"},
		{"kind NOT LIKE 'a%'", "(kind IS NULL OR kind NOT LIKE 'a%')"},
		{"NOT kind = 'a'", "(kind IS NULL OR NOT kind = 'a')"},
		{"NOT urgent", "(urgent IS NULL OR NOT urgent)"},
		{"NOT (n > 3)", "(n IS NULL OR NOT n > 3)"},
		{"NOT (kind = 'a' OR plan = 'b')", "NOT ((kind IS NOT NULL AND kind = 'a') OR (plan IS NOT NULL AND plan = 'b'))"},
		{"NOT (kind = 'a' AND plan = 'b')", "NOT ((kind IS NOT NULL AND kind = 'a') AND (plan IS NOT NULL AND plan = 'b'))"},
		{"price * 2 <> 10", "(price IS NULL OR price * 2 <> 10)"},
		{"sys.Label <> 'a'", "(sys.Label IS NULL OR sys.Label <> 'a')"},
		{"[my kind] <> 'a'", "([my kind] IS NULL OR [my kind] <> 'a')"},
		{"EXISTS(kind) AND kind <> 'a' OR kind <> 'b'", "EXISTS(kind) AND kind <> 'a' OR (kind IS NULL OR kind <> 'b')"},
		// Mending the first of them is enough, or the second.
		{"kind <> 'a' OR kind <> 'b'", "(kind IS NULL OR kind <> 'a') OR (kind IS NULL OR kind <> 'b')"},

		{"plan = 'paid'", ""},
		{"kind IS NULL OR kind <> 'a'", ""},
		{"kind <> 'a' OR NOT EXISTS(kind)", ""},
		{"kind <> 'a' AND kind IS NOT NULL", ""},
		{"EXISTS(kind) AND kind NOT IN ('a')", ""},
		{"kind = 'b' AND kind <> 'a'", ""}, // without kind it is false, as expected
		{"NOT (kind <> 'a')", ""},          // the same
		{"NOT (kind = 'a') AND kind > 'b'", ""},
		{"n > 3 OR n < 1", ""},
		{"NOT (kind IS NULL)", ""},
		{"NOT EXISTS(kind)", ""},
		{"sys.DeliveryCount <> 1 AND sys.TimeToLive <> p", "sys.DeliveryCount <> 1 AND (p IS NULL OR sys.TimeToLive <> p)"},
		{"property('ki' + 'nd') <> 'a'", ""}, // which property that is differs
		{"1 <> 2", ""},
		{"NOT (1 = NULL)", ""},
	} {
		x := parse(t, tt.sql)
		got := ""
		if gaps := x.Gaps(); len(gaps) > 0 {
			got = x.String()
			for _, g := range gaps {
				got = strings.Replace(got, g.Part, g.Fix, 1)
			}
			if again := parse(t, got).Gaps(); len(again) > 0 {
				t.Errorf("%s\nmended: %s\nhas gaps: %v", tt.sql, got, again)
			}
		}
		if got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.sql, got, tt.want)
		}
	}
}

// A comparison of two properties has a gap for each.
func TestGapsOfTwoProperties(t *testing.T) {
	want := "[{kind kind <> plan (kind IS NULL OR kind <> plan)} {plan kind <> plan (plan IS NULL OR kind <> plan)}]"
	if got := fmt.Sprint(parse(t, "kind <> plan").Gaps()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What mends a gap changes the result only for messages without the property, and there
// from unknown to true for at least one message.
func TestMendedGapsMatchWithoutTheProperty(t *testing.T) {
	values := map[string][]any{"kind": {nil, "a", "b", "report"}, "plan": {nil, "paid", "b"}, "n": {nil, 1, 5}}
	for _, sql := range []string{
		"plan = 'paid' AND kind <> 'report'", "NOT (kind = 'a' OR plan = 'b')", "NOT (kind = 'a' AND plan = 'b')", "NOT (n > 3) OR kind = 'a'",
		"kind NOT IN ('a', 'report') AND (n < 3 OR plan NOT LIKE 'p%')", "n = 1 AND kind IS NULL OR NOT n = 5 AND kind <> 'b'",
	} {
		x := parse(t, sql)
		gaps := x.Gaps()
		text := x.String()
		for _, g := range gaps {
			text = strings.Replace(text, g.Part, g.Fix, 1)
		}
		mended, gained := parse(t, text), map[string]bool{}
		for _, kind := range values["kind"] {
			for _, plan := range values["plan"] {
				for _, n := range values["n"] {
					v := having(map[string]any{"kind": kind, "plan": plan, "n": n})
					was, _ := x.Match(v)
					is, _ := mended.Match(v)
					missing := false
					for _, g := range gaps {
						without := map[string]any{"kind": kind, "plan": plan, "n": n}[g.Missing.User] == nil
						missing = missing || without
						gained[g.Missing.User] = gained[g.Missing.User] || without && is && !was
					}
					if was && !is || is && !was && !missing {
						t.Errorf("%s\nmended: %s\nfor kind %v, plan %v, n %v it was %t and is %t", sql, text, kind, plan, n, was, is)
					}
				}
			}
		}
		for _, g := range gaps {
			if !gained[g.Missing.User] {
				t.Errorf("%s\nmended: %s\nno message without %s is matched now that was not", sql, text, g.Missing)
			}
		}
	}
}

// having returns a message with those properties that are not nil.
func having(properties map[string]any) *Envelope {
	var d message.Draft
	for name, v := range properties {
		switch v := v.(type) {
		case string:
			d.Application = append(d.Application, message.Pair{Name: name, Value: codec.String(v)})
		case int:
			d.Application = append(d.Application, message.Pair{Name: name, Value: codec.Int(int32(v))})
		}
	}
	return &Envelope{Message: d.Message()}
}

func TestTrueWithout(t *testing.T) {
	for sql, want := range map[string]bool{
		"kind IS NULL": true, "NOT EXISTS(kind)": true, "kind IS NULL OR plan = 'a'": true, "TRUE": true,
		"kind <> 'a'": false, "kind IS NULL AND plan = 'a'": false, "plan = 'a'": false, "EXISTS(kind)": false,
	} {
		if got := parse(t, sql).TrueWithout(Name{User: "kind"}); got != want {
			t.Errorf("%s without kind: %t, want %t", sql, got, want)
		}
	}
}
