// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/filter/value"
	"github.com/triagemq/triagemq/internal/message"
)

// expensive are conditions whose cost grows with the message as much as with the
// text of the rule, and a message for each that makes it grow.
func expensive() []struct {
	name, sql string
	user      map[string]value.Value
} {
	long := strings.Repeat("a", 100_000)
	similar := strings.Repeat("a", 99_999) + "b"
	texts := map[string]value.Value{"x": value.MakeString(long), "y": value.MakeString(similar)}
	many := func(part string) string {
		return strings.TrimSuffix(strings.Repeat(part+" OR ", 65_000/len(part+" OR ")), " OR ")
	}
	return []struct {
		name, sql string
		user      map[string]value.Value
	}{
		{"LIKE with _", "x LIKE '%" + strings.Repeat("_a", 10_000) + "b%'", texts},
		{"LIKE a property", "x LIKE '%_' + y", texts},
		{"many LIKE", many("x LIKE '%ab%'"), texts},
		{"=", many("x = y"), texts},
		{"<", many("x > y"), texts},
		{"computed =", many("x + '' = y"), texts},
		{"IN a short list", many("x IN (y)"), texts},
		{"IN a long list", many("x IN ('1','2','3','4','5','6','7','8','9')"), texts},
		{"+", many("x + y = ''"), texts},
		{"+ in +", strings.TrimSuffix(strings.Repeat("x + ", 150), "+ ") + "= ''", texts},
		{"p of a long name", many("p(x) = 1"), texts},
		{"newid", many("newid()=id"), map[string]value.Value{"id": value.MakeInt(1)}},
		{"many names", manyNames(5000), nil},
	}
}

// manyNames uses more properties than one evaluation caches.
func manyNames(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf("q%d=1", i)
	}
	return strings.Join(parts, " OR ")
}

// TestStepLimit is for B9: the work of every expression is bounded, and more is
// an evaluation error.
func TestStepLimit(t *testing.T) {
	for _, tt := range expensive() {
		t.Run(tt.name, func(t *testing.T) {
			x := mustParse(t, tt.sql)
			if _, err := x.Match(&bag{user: tt.user}); !errors.Is(err, ErrEvaluation) || !strings.Contains(fmt.Sprint(err), "steps") {
				t.Errorf("Match: %v, want an error that names the limit of steps", err)
			}
			if ex := x.Explain(&bag{user: tt.user}); ex.Result != "error" {
				t.Errorf("Explain: %s %s, want an error", ex.Result, ex)
			}
			var got error
			Compile([]Filter{x}).Match(&bag{user: tt.user}, func(_ int, err error) { got = err })
			if !errors.Is(got, ErrEvaluation) {
				t.Errorf("in a set: %v, want an evaluation error", got)
			}
		})
	}
}

// TestStepLimitOfActions is for B9: the statements of an action share one
// limit, because each can double the result of the one before it.
func TestStepLimitOfActions(t *testing.T) {
	a, err := ParseAction(strings.Repeat("SET x = x + x; ", 20), nil)
	if err != nil {
		t.Fatal(err)
	}
	if changes, err := a.Apply(&bag{user: map[string]value.Value{"x": value.MakeString("a")}}); !errors.Is(err, ErrEvaluation) {
		t.Errorf("a text of %d bytes and %v, want an evaluation error", len(changes[0].Value.Str()), err)
	}
	if _, err := a.Apply(&bag{user: map[string]value.Value{"x": value.MakeInt(1)}}); err != nil {
		t.Errorf("the same action with a number: %v", err)
	}
}

// TestStepLimitWhileParsing is for B9: what the parser computes of constants and
// parameters is bounded, too.
func TestStepLimitWhileParsing(t *testing.T) {
	params := Params{"x": value.MakeString(strings.Repeat("a", 1000))}
	sum := strings.TrimSuffix(strings.Repeat("@x + ", 150), "+ ")
	x, err := Parse(strings.TrimSuffix(strings.Repeat(sum+"= '' OR ", 40), " OR "), params)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Match(sample()); !errors.Is(err, ErrEvaluation) {
		t.Errorf("%v, want an evaluation error", err)
	}
}

// TestWithinSteps checks conditions that must be possible for messages of the
// largest size.
func TestWithinSteps(t *testing.T) {
	text := strings.Repeat("the quick brown fox jumps over the lazy dog ", 750) // 33 KB
	user := map[string]value.Value{"text": value.MakeString(text), "same": value.MakeString(strings.Clone(text)), "word": value.MakeString("%lazy%d_g%")}
	for _, sql := range []string{
		"text LIKE '%quick%fox%dog ' AND text LIKE '%l_zy%' AND text LIKE '%d_g ' AND NOT text LIKE '%cat%' AND text LIKE 'the%'",
		"text = same AND text <= same AND text IN ('a', same) AND text + '!' = same + '!'",
		"text LIKE word",
		"text LIKE '%" + strings.Repeat("o%", 3000) + "'",
		strings.TrimSuffix(strings.Repeat("text LIKE '%dog%cat%' OR ", 100), "OR ") + "OR TRUE",
		strings.TrimSuffix(strings.Repeat("absent = 1 OR ", 4000), "OR ") + "OR TRUE",
	} {
		if ok, err := mustParse(t, sql).Match(&bag{user: user}); !ok || err != nil {
			t.Errorf("%s: %v, %v", shorten(sql), ok, err)
		}
	}
}

// TestLikeIsLinear counts the steps of patterns without _: they grow with the text
// and not with the text times the pattern.
func TestLikeIsLinear(t *testing.T) {
	for _, pat := range []string{
		"%" + strings.Repeat("a", 1000) + "b%", strings.Repeat("%a", 5000) + "%b%",
		"%ab%ab%", "a%" + strings.Repeat("a", 1000) + "b%a", "%" + strings.Repeat("%", 5000) + "b%c%",
	} {
		x := mustParse(t, "x LIKE '"+pat+"'")
		for _, n := range []int{10_000, 20_000, 40_000} {
			e := env{view: &bag{user: map[string]value.Value{"x": value.MakeString(strings.Repeat("a", n))}}, steps: 1 << 30}
			if got := e.test(x.root); got != no || e.err != nil {
				t.Fatalf("%s: %v, %v", shorten(pat), got, e.err)
			}
			if used := 1<<30 - e.steps; used > n+2*len(pat) {
				t.Errorf("%s of %d bytes with %d letters: %d steps", shorten(pat), len(pat), n, used)
			}
		}
	}
}

// naiveLike is LIKE as its definition reads, for short texts.
func naiveLike(s, pat string, escape rune) bool {
	if pat == "" {
		return s == ""
	}
	w, n, ok := nextWild(pat, escape)
	switch {
	case !ok:
		return false
	case w == anyRun:
		for {
			if naiveLike(s, pat[n:], escape) {
				return true
			}
			if s == "" {
				return false
			}
			_, size := utf8.DecodeRuneInString(s)
			s = s[size:]
		}
	case s == "":
		return false
	}
	_, size := utf8.DecodeRuneInString(s)
	return (w == anyOne || s[:size] == literal(pat[:n])) && naiveLike(s[size:], pat[n:], escape)
}

func compareLike(t *testing.T, s, pat, escape string) {
	t.Helper()
	if len(s) > 64 || len(pat) > 64 || strings.Count(pat, "%") > 6 || !utf8.ValidString(pat) || escape != "" && !oneRune(escape) {
		return
	}
	want := ternaryOf(naiveLike(s, pat, escapeRune(escape)))
	user := map[string]value.Value{"s": value.MakeString(s), "pat": value.MakeString(pat), "escape": value.MakeString(escape)}
	params := Params{"pat": value.MakeString(pat), "escape": value.MakeString(escape)}
	for _, sql := range []string{"s LIKE @pat", "s LIKE pat", "s LIKE @pat ESCAPE @escape", "s LIKE pat ESCAPE escape", "s LIKE @pat ESCAPE escape"} {
		if strings.Contains(sql, "ESCAPE") != (escape != "") {
			continue
		}
		x, err := Parse(sql, params)
		if err != nil {
			continue // a pattern that ends in its escape character
		}
		v, err := x.Eval(&bag{user: user})
		if err != nil || truth(v) != want {
			t.Errorf("%q LIKE %q ESCAPE %q by %s: %v, %v; want %v", s, pat, escape, sql, v, err, want)
		}
	}
}

// TestLikeAgainstDefinition tries every short text with every short pattern.
func TestLikeAgainstDefinition(t *testing.T) {
	words := func(letters []string, upTo int) (all []string) {
		all = []string{""}
		for from, n := 0, 0; n < upTo; n++ {
			to := len(all)
			for _, w := range all[from:to] {
				for _, l := range letters {
					all = append(all, w+l)
				}
			}
			from = to
		}
		return all
	}
	for _, s := range words([]string{"a", "b", "é", "\xe9"}, 4) {
		for _, pat := range words([]string{"a", "b", "%", "_"}, 4) {
			compareLike(t, s, pat, "")
		}
	}
	for _, s := range words([]string{"a", "%", "_", "!"}, 3) {
		for _, pat := range words([]string{"a", "%", "_", "!"}, 3) {
			compareLike(t, s, pat, "!")
		}
	}
}

// FuzzLike compares LIKE, with the pattern known in advance and not, with its
// definition.
func FuzzLike(f *testing.F) {
	f.Add("orders/eu/100%_sure", "%!%%s_r_", "!")
	f.Add("aaaaaaaaaab", "%a_a%_b", "")
	f.Add("größe\xff", "gr__e_", "")
	f.Add("%", "%%%", "%")
	f.Fuzz(func(t *testing.T, s, pat, escape string) { compareLike(t, s, pat, escape) })
}

// TestManyProperties is for B9: a message with very many properties answers by
// the same rules as one with few, and a lookup does not read through all of
// them.
func TestManyProperties(t *testing.T) {
	var d message.Draft
	for i := range 3 * scanned {
		d.Application = append(d.Application,
			message.Pair{Name: fmt.Sprint("Name", i), Value: codec.Int(int32(i))},
			message.Pair{Name: fmt.Sprint("nAME", i), Value: codec.Int(int32(-i))})
	}
	d.Application = append(d.Application, message.Pair{Name: "ÄNDERUNG", Value: codec.Int(7)}, message.Pair{Name: "\u212Aelvin", Value: codec.Int(8)})
	e := &Envelope{Message: d.Message()}
	for _, sql := range []string{
		"Name100 = 100", "nAME100 = -100", "name100 = 100", "NAME150 = 150", "änderung = 7", "kelvin = 8", "KELVIN = 8", "NOT EXISTS(name1000)",
	} {
		if ok, err := mustParse(t, sql).Match(e); !ok || err != nil {
			t.Errorf("%s: %v, %v", sql, ok, err)
		}
	}
	e.Message = orderMessage().Message
	if ok, err := mustParse(t, "priority = 'High' AND NOT EXISTS(Name100)").Match(e); !ok || err != nil {
		t.Errorf("the next message: %v, %v", ok, err)
	}
}

// A rule that fails counts as what it takes, and its error has no text until somebody asks.
func TestRulesThatFailAreCounted(t *testing.T) {
	m := &bag{user: map[string]value.Value{"a": value.MakeInt(1)}}
	const n = 1000
	var rules []Filter
	for range n {
		rules = append(rules, mustParse(t, "a / 0 = 1"))
	}
	set := Compile(rules)
	var last error
	hit := func(_ int, err error) { last = err }
	if steps := set.Match(m, hit); steps < n*stepsPerFailure {
		t.Errorf("%d rules that fail took %d steps, want %d for each", n, steps, stepsPerFailure)
	}
	if want := "filter: cannot evaluate a / 0: division by zero"; last == nil || last.Error() != want {
		t.Errorf("the error is %v, want %s", last, want)
	}
	if allocs := testing.AllocsPerRun(10, func() { set.Match(m, hit) }); allocs > n+10 {
		t.Errorf("%d rules that fail allocate %v times, want once each", n, allocs)
	}
}

// The actions on a message share steps as its rules do.
func TestActionsShareSteps(t *testing.T) {
	m := &bag{user: map[string]value.Value{"x": value.MakeString(strings.Repeat("a", 20<<10))}}
	a, err := ParseAction("SET b = x + 'b'", nil)
	if err != nil {
		t.Fatal(err)
	}
	shared, refused := MessageSteps, 0
	for range 100 {
		if _, err := a.ApplyWithin(m, &shared); err != nil {
			refused++
		}
	}
	if used := MessageSteps - shared; used > MessageSteps+100*(fewSteps+10)+defaultSteps || refused == 0 || refused == 100 {
		t.Errorf("100 actions took %d steps, and %d were refused; want about %d", used, refused, MessageSteps)
	}
}

// Issue 10: the rules of a topic share the budget of one message. Expensive
// rules fail when it is used up; others are evaluated as usual.
func TestRulesOfATopicShareSteps(t *testing.T) {
	long := strings.Repeat("a", 30<<10)
	m := &bag{user: map[string]value.Value{"x": value.MakeString(long), "color": value.MakeString("red")}}
	var rules []Filter
	for range 1000 {
		rules = append(rules, mustParse(t, "x LIKE '%"+strings.Repeat("_a", 400)+"b%'"))
	}
	rules = append(rules, mustParse(t, "color LIKE 'r_d%'"))
	failed, hits := 0, 0
	used := Compile(rules).Match(m, func(rule int, err error) {
		switch {
		case err != nil:
			failed++
		case rule == len(rules)-1:
			hits++
		}
	})
	if most := MessageSteps + len(rules)*(fewSteps+100); used > most || used < MessageSteps/2 {
		t.Errorf("the rules took %d steps, want %d at most", used, most)
	}
	if failed != len(rules)-1 || hits != 1 {
		t.Errorf("%d rules failed and the last one hit %d times, want %d and 1", failed, hits, len(rules)-1)
	}
}
