// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"errors"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/message"
)

var seeds = []string{
	"Priority = 'High' AND n > 3 OR NOT (d < 2.5e0)", "a IN (1, 'x', NULL) AND b NOT LIKE '%!%_' ESCAPE '!'", "EXISTS([a]]b]) AND sys.Label IS NOT NULL",
	"p('sys.' + Priority) = newid()", "-n * (d + @limit) % 3 >= - -9223372036854775808", "due - sent <= @span", `"a""b" = N'größe'`, "n / 0 = 1",
	"((((", "NOT NOT NOT yes", "n IN (1,2,3,4,5,6,7,8,9,10)", "big = 1e19 AND minus <> .5", "(a = 1) = (b = TRUE)", "user.[x] = sys.To",
	"path LIKE 'o%/%_\x25' + name ESCAPE name", "path LIKE '%e_/%!_s%re' ESCAPE '!'", "name + name + name + name LIKE '%' + name + '_%'",
}

// FuzzParse checks for every text: parsing it is an error of the right type, or
// returns a canonical form that parses to itself and means the same.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		x, err := ParseValue(sql, sampleParams)
		if err != nil {
			bad, ok := errors.AsType[*syntaxError](err)
			if !ok || bad.Found == "" || bad.Want == "" || bad.Caret() == "" || bad.Pos.Offset > len(sql) {
				t.Fatalf("ParseValue(%q): %#v", sql, err)
			}
			return
		}
		text := x.String()
		again, err := parseLimits{Length: 1 << 20}.ParseValue(text, sampleParams)
		if err != nil {
			t.Fatalf("%q reads as %q, which does not parse: %v", sql, text, err)
		}
		if got := again.String(); got != text {
			t.Fatalf("%q reads as %q, and that as %q", sql, text, got)
		}
		for _, g := range x.Gaps() {
			if _, err := (parseLimits{Length: 1 << 20, Depth: 1000}.ParseValue(g.Fix, sampleParams)); err != nil || !strings.Contains(text, g.Part) {
				t.Fatalf("%q has the gap %+v: %v", text, g, err)
			}
		}
		v, err := x.Eval(sample())
		w, errAgain := again.Eval(sample())
		if v.String() != w.String() || (err == nil) != (errAgain == nil) {
			t.Fatalf("%q is %v (%v), its canonical form %q is %v (%v)", sql, v, err, text, w, errAgain)
		}
	})
}

// FuzzMatch evaluates any condition over any message, alone and in a set.
func FuzzMatch(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, orderMessage().Message.Bytes())
	}
	d := fullDraft()
	f.Add("int < 5 AND span > @span", d.Encode(nil))
	f.Fuzz(func(t *testing.T, sql string, raw []byte) {
		x, err := Parse(sql, sampleParams)
		if err != nil {
			return
		}
		m, err := message.Parse(raw)
		if err != nil {
			return
		}
		view := &Envelope{Message: m, IDs: func() [16]byte { return [16]byte{1} }}
		want, wantErr := x.Match(view)
		if bad, ok := errors.AsType[*evalError](wantErr); ok && bad.Reason == tooManySteps {
			return // a set may know better without evaluating
		}
		got, gotErr := false, error(nil)
		Compile([]Filter{x, False}).Match(view, func(_ int, err error) { got, gotErr = err == nil, err })
		if got != want || (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("%q: alone %v, %v; in a set %v, %v", sql, want, wantErr, got, gotErr)
		}
		if ex := x.Explain(view); ex.Matched != want || len(ex.Reasons) == 0 {
			t.Fatalf("%q: matched %v, explained as %+v", sql, want, ex)
		}
	})
}

// FuzzAction applies any action to any message; the changed copy is a message.
func FuzzAction(f *testing.F) {
	raw := orderMessage().Message.Bytes()
	for _, s := range []string{"SET a = amount + 1; REMOVE Priority", "SET sys.Label = p('tenant'); SET x = NULL;", "SET sys.TimeToLive = @span", "SET [a]]b] = 'x' + tenant; SET amount = '7'",
		"SET a = tenant + tenant; SET a = a + a; SET a = a + a; SET a = a + a; SET a = a + a"} {
		f.Add(s, raw)
	}
	f.Fuzz(func(t *testing.T, sql string, raw []byte) {
		a, err := ParseAction(sql, sampleParams)
		if err != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Fatalf("ParseAction(%q): %v", sql, err)
			}
			return
		}
		again, err := parseLimits{Length: 1 << 20}.ParseAction(a.String(), sampleParams)
		if err != nil || again.String() != a.String() {
			t.Fatalf("%q reads as %q, which reads as %v, %v", sql, a, again, err)
		}
		m, err := message.Parse(raw)
		if err != nil {
			return
		}
		changes, err := a.Apply(&Envelope{Message: m})
		if err != nil {
			if !errors.Is(err, ErrEvaluation) {
				t.Fatalf("%q: %v", sql, err)
			}
			return
		}
		if _, err := message.Parse(m.Edit(Edit(m, changes))); err != nil {
			t.Fatalf("%q made a copy that does not parse: %v", sql, err)
		}
	})
}
