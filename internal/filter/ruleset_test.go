// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/filter/value"
)

func TestCorrelation(t *testing.T) {
	m := sample()
	m.system[CorrelationID] = value.MakeString("c")
	for _, tt := range []struct {
		name string
		c    Correlation
		want bool
	}{
		{"a field", Correlation{Subject: "order.created"}, true},
		{"case counts", Correlation{Subject: "Order.Created"}, false},
		{"two fields", Correlation{Subject: "order.created", CorrelationID: "c"}, true},
		{"one of two differs", Correlation{Subject: "order.created", CorrelationID: "d"}, false},
		{"a field the message lacks", Correlation{To: "x"}, false},
		{"every field", Correlation{MessageID: "m-1", CorrelationID: "c", To: "x", ReplyTo: "x", Subject: "order.created", SessionID: "x", ReplyToSessionID: "x", ContentType: "x"}, false},
		{"a string property", Correlation{Properties: map[string]value.Value{"Priority": value.MakeString("High")}}, true},
		{"names ignore case", Correlation{Properties: map[string]value.Value{"PRIORITY": value.MakeString("High")}}, true},
		{"values do not", Correlation{Properties: map[string]value.Value{"Priority": value.MakeString("high")}}, false},
		{"numbers by value", Correlation{Properties: map[string]value.Value{"n": value.MakeDouble(5)}}, true},
		{"types count", Correlation{Properties: map[string]value.Value{"n": value.MakeString("5")}}, false},
		{"several", Correlation{Subject: "order.created", Properties: map[string]value.Value{"n": value.MakeInt(5), "yes": value.MakeBool(true), "sent": value.MakeTime(noon)}}, true},
		{"a missing property", Correlation{Properties: map[string]value.Value{"missing": value.MakeInt(5)}}, false},
		{"null equals nothing", Correlation{Properties: map[string]value.Value{"nothing": value.MakeNull()}}, false},
		{"no fields", Correlation{}, false},
	} {
		if got, err := tt.c.Match(m); got != tt.want || err != nil {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
		if got := tt.c.Explain(m); got.Matched != tt.want {
			t.Errorf("%s: explained as %v: %v", tt.name, got.Matched, got)
		}
		hits := 0
		Compile([]Filter{&tt.c}).Match(m, func(int, error) { hits++ })
		if (hits == 1) != tt.want {
			t.Errorf("%s: %d hits through the index, want match %v", tt.name, hits, tt.want)
		}
	}
}

func TestCorrelationValidate(t *testing.T) {
	if err := (&Correlation{}).Validate(); !errors.Is(err, ErrNoCondition) {
		t.Errorf("an empty filter: %v, want %v", err, ErrNoCondition)
	}
	if err := (&Correlation{Properties: map[string]value.Value{"a": value.MakeNull(), "": value.MakeInt(1)}}).Validate(); err == nil {
		t.Error("a null property and an empty name are accepted")
	}
	if err := (&Correlation{SessionID: "s"}).Validate(); err != nil {
		t.Errorf("one field: %v", err)
	}
}

func TestCorrelationAsSQL(t *testing.T) {
	c := &Correlation{Subject: "it's", To: "x", Properties: map[string]value.Value{"b": value.MakeInt(1), "a b": value.MakeString("v")}}
	if got, want := c.String(), "sys.Label = 'it''s' AND sys.To = 'x' AND [a b] = 'v' AND b = 1"; got != want {
		t.Errorf("String() = %s, want %s", got, want)
	}
	if got := parse(t, c.String()).String(); got != c.String() {
		t.Errorf("parsed again it is %s", got)
	}
}

// TestRuleSetAgreesWithRules checks Match on random sets: the index finds the
// same as evaluating each rule.
func TestRuleSetAgreesWithRules(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	name := func() string {
		return pick("a", "b", "A", "sys.Label", "sys.SequenceNumber", "missing", "sys.LockToken")
	}
	constant := func() string { return pick("1", "2", "1.0", "'1'", "'x'", "TRUE", "NULL", "-1") }
	number := func() string {
		return pick("0", "1", "2", "1.5", "-1", "9223372036854775807", "-9223372036854775808", "1 + 1")
	}
	order := func() string { return pick(" < ", " <= ", " > ", " >= ") }
	term := func() string {
		switch random.IntN(9) {
		case 0:
			return constant() + " = " + name()
		case 1:
			return name() + " IN (" + constant() + ", " + constant() + ", 1)"
		case 2:
			return name() + pick(" < ", " <> ", " >= ") + constant()
		case 3:
			return "a / " + pick("0", "1", "b") + " = 1"
		case 4:
			return pick("a = b", "a IN (b, 2)", "p('a') = 1", "p('sys.' + b) = 1", "NOT a = 1", "a NOT IN (1)", "EXISTS(a)")
		case 5:
			return name() + order() + number()
		case 6:
			return number() + order() + name()
		default:
			return name() + " = " + constant()
		}
	}
	anyValue := func() value.Value {
		of := []value.Value{
			value.MakeInt(1), value.MakeInt(2), value.MakeDouble(1), value.MakeString("1"), value.MakeString("x"), value.MakeBool(true), value.MakeNull(), {},
			value.MakeInt(math.MaxInt64), value.MakeInt(math.MinInt64), value.MakeUint(1 << 63), value.MakeDouble(1.5),
		}
		return of[random.IntN(len(of))]
	}
	for range 300 {
		var rules []Filter
		for range 40 {
			switch random.IntN(10) {
			case 0:
				rules = append(rules, Constant(random.IntN(2) == 0))
			case 1, 2:
				rules = append(rules, &Correlation{Subject: pick("", "x"), Properties: map[string]value.Value{pick("a", "A"): anyValue(), "b": anyValue()}})
			default:
				sql := []string{term()}
				for range random.IntN(3) {
					sql = append(sql, pick("AND", "AND", "OR"), term())
				}
				rules = append(rules, parse(t, strings.Join(sql, " ")))
			}
		}
		m := &bag{user: map[string]value.Value{}, system: map[SystemName]value.Value{SequenceNumber: anyValue()}}
		for _, key := range []string{"a", "A", "b"} {
			if v := anyValue(); v.Kind() != value.Unknown {
				m.user[key] = v
			}
		}
		if v := anyValue(); v.Kind() == value.String {
			m.system[Subject] = v
		}
		checkSet(t, rules, m)
	}
}

func checkSet(t *testing.T, rules []Filter, m View) {
	t.Helper()
	var got, want []string
	Compile(rules).Match(m, func(rule int, err error) { got = append(got, fmt.Sprint(rule, " ", rules[rule], " ", err)) })
	for i, r := range rules {
		if ok, err := r.Match(m); ok || err != nil {
			want = append(want, fmt.Sprint(i, " ", r, " ", err))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("message %+v\n got %q\nwant %q", m, got, want)
	}
}

// odd is a filter that is not of this package.
type odd struct{ Constant }

func TestRuleSetAsksForeignFilters(t *testing.T) {
	checkSet(t, []Filter{odd{True}, odd{False}}, sample())
}

func TestRuleSetWithManyProperties(t *testing.T) {
	m := &bag{user: map[string]value.Value{}}
	var rules []Filter
	for i := range 3 * cached {
		name := fmt.Sprint("p", i)
		m.user[name] = value.MakeInt(int64(i))
		rules = append(rules, parse(t, fmt.Sprintf("%s = %d", name, i)), parse(t, fmt.Sprintf("%s > %d", name, i)),
			&Correlation{Properties: map[string]value.Value{name: value.MakeInt(int64(i)), "p0": value.MakeInt(0)}})
	}
	checkSet(t, rules, m)
}

func TestManyRulesShareOneLookup(t *testing.T) {
	var rules []Filter
	for i := range 1000 {
		rules = append(rules, &Correlation{Subject: "s", Properties: map[string]value.Value{"tenant": value.MakeInt(int64(i))}})
		rules = append(rules, parse(t, fmt.Sprintf("tenant = %d AND n > 1", i)))
	}
	set := Compile(rules)
	if len(set.indexes) != 2 || len(set.scan) != 0 {
		t.Errorf("%d indexes and %d rules to scan, want 2 and 0", len(set.indexes), len(set.scan))
	}
}
