// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/message"
)

func envelope(d message.Draft) *filter.Envelope { return &filter.Envelope{Message: d.Message()} }

func properties(pairs ...any) message.Draft {
	var d message.Draft
	for i := 0; i < len(pairs); i += 2 {
		v, ok := pairs[i+1].(codec.Value)
		if !ok {
			v = codec.String(pairs[i+1].(string))
		}
		d.Application = append(d.Application, message.Pair{Name: pairs[i].(string), Value: v})
	}
	return d
}

func TestClassify(t *testing.T) {
	p := parse(t, `{"fairKey": "tenant", "classes": [
		{"name": "broken", "level": 9, "when": "1 / amount = 1"},
		{"name": "paying", "level": 8, "when": "plan = 'paid'"},
		{"name": "asking", "when": "plan = 'own'"},
		{"name": "also", "level": 1, "when": "plan IN ('paid', 'test')"}]}`)
	high := properties("Priority", "High")
	high.Priority = 2
	header := message.Draft{Priority: 6}
	zero := message.Draft{Priority: 0, PrioritySet: true}
	reply := func(d message.Draft, class string) message.Draft {
		for _, c := range (message.Inherited{Level: 5, Class: class, Since: time.Unix(1, 0)}).Changes() {
			if !c.Remove {
				d.Annotations = append(d.Annotations, message.Pair{Name: c.Name, Value: c.Value})
			}
		}
		return d
	}
	for _, tt := range []struct {
		name string
		in   message.Draft
		want Classification
	}{
		{"first match", properties("plan", "paid", "tenant", "t"), Classification{2, 8, "t"}},
		{"later match", properties("plan", "test"), Classification{4, 1, ""}},
		{"class without a level", properties("plan", "own", "Priority", codec.Int(200)), Classification{3, 200, ""}},
		{"an error is no match", properties("amount", codec.Int(0), "plan", "paid"), Classification{2, 8, ""}},
		{"no class, property", high, Classification{0, 7, ""}},
		{"no class, header", header, Classification{0, 6, ""}},
		{"no class, zero header", zero, Classification{0, 0, ""}},
		{"nothing at all", message.Draft{}, Classification{0, 4, ""}},
		{"a reply", reply(zero, ""), Classification{0, 5, ""}},
		{"a reply to one of a class", reply(message.Draft{}, "PAYING"), Classification{2, 8, ""}},
		{"a reply to one of a class without a level", reply(message.Draft{}, "asking"), Classification{3, 5, ""}},
		{"a reply to one of a foreign class", reply(message.Draft{}, "other"), Classification{0, 5, ""}},
		{"a reply that a condition takes", reply(properties("plan", "test"), "paying"), Classification{4, 1, ""}},
		{"a reply that a rule gave a priority", reply(high, "paying"), Classification{0, 7, ""}},
		{"a number as key", properties("tenant", codec.Int(17)), Classification{0, 4, "17"}},
		{"null as key", properties("tenant", codec.Value{}), Classification{0, 4, ""}},
	} {
		if got := p.Classify(envelope(tt.in)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestClassNames(t *testing.T) {
	p := parse(t, shop)
	if got := p.ClassName(0) + "," + p.ClassName(1) + "," + p.ClassName(2) + "," + p.ClassName(3); got != ",paying,free," {
		t.Errorf("names %q", got)
	}
}

func TestWhy(t *testing.T) {
	p := parse(t, shop)
	own := parse(t, `{"classes": [{"name": "any"}]}`)
	some := parse(t, `{"classes": [{"name": "paying", "level": 8, "when": "plan = 'paid'"}]}`)
	odd := properties("Priority", "urgent!")
	odd.Priority = 6
	for _, tt := range []struct {
		p    *Policy
		in   message.Draft
		want []string
	}{
		{p, properties("plan", "paid", "kind", "order", "tenant", "t"), []string{`class "paying" takes it, because `, "level 8", `tenant = "t"`}},
		{p, properties("plan", "gratis"), []string{`class "free" takes every message that no class before it takes`, "level 2", `not "paying", because plan`}},
		{own, properties("Priority", "High"), []string{`class "any"`, "level 7, because its property Priority is"}},
		{some, message.Draft{}, []string{"no class takes it; level 4, because it asks for none", `not "paying"`}},
		{new(Policy), message.Draft{Priority: 3}, []string{"the queue has no classes; level 3, because its header has priority 3"}},
		{new(Policy), odd, []string{"level 6, because its header has priority 6 (its property Priority is", "which is no level"}},
	} {
		got := tt.p.Why(envelope(tt.in))
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%q does not say %q", got, want)
			}
		}
	}
}

// tenRules is a policy whose last of ten rules takes the message.
func tenRules(t testing.TB) (*Policy, *filter.Envelope) {
	var b strings.Builder
	b.WriteString(`{"classes": [`)
	for i := range 9 {
		fmt.Fprintf(&b, `{"name": "c%d", "level": %d, "when": "plan = 'p%d' AND amount > %d"},`, i, i, i, i)
	}
	b.WriteString(`{"name": "last", "level": 9, "when": "plan = 'paid' AND kind <> 'report'"}]}`)
	e := envelope(properties("Priority", "High", "plan", "paid", "kind", "order", "amount", codec.Int(12), "region", "eu"))
	return parse(t, b.String()), e
}

func TestClassifyDoesNotAllocate(t *testing.T) {
	p, e := tenRules(t)
	messages := []*message.Message{e.Message, envelope(properties("plan", "x")).Message}
	i := 0
	if got := testing.AllocsPerRun(100, func() {
		i++
		e.Message = messages[i%2]
		p.Classify(e)
	}); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func BenchmarkClassify(b *testing.B) {
	p, e := tenRules(b)
	d := properties("Priority", "High", "plan", "paid", "kind", "order", "amount", codec.Int(12), "region", "eu")
	messages := []*message.Message{e.Message, d.Message()}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e.Message = messages[i&1] // so that its properties are read anew
		if v := p.Classify(e); v.Class != 10 {
			b.Fatal(v)
		}
	}
}

// A priority that is no level is unknown unless a condition of a class took the message:
// then the policy may know it.
func TestUnknownPriority(t *testing.T) {
	gold := func(more string) *Policy {
		return parse(t, `{"classes":[{"name":"gold","when":"Priority = 'Gold'"}`+more+`]}`)
	}
	for _, tt := range []struct {
		policy   *Policy
		priority codec.Value
		want     bool
	}{
		{new(Policy), codec.String("hgih"), true},
		{new(Policy), codec.String("High"), false},
		{new(Policy), codec.String("12"), false},
		{new(Policy), codec.Long(300), true},
		{new(Policy), codec.Value{}, false},
		{gold(""), codec.String("Gold"), false},
		{gold(""), codec.String("Glod"), true},
		{gold(`,{"name":"rest","level":3}`), codec.String("Glod"), true},
		{gold(`,{"name":"rest","level":3}`), codec.String("low"), false},
	} {
		e := envelope(properties("Priority", tt.priority))
		if got := tt.policy.UnknownPriority(e.Message, tt.policy.Classify(e)); got != tt.want {
			t.Errorf("priority %v: unknown %v, want %v", tt.priority, got, tt.want)
		}
	}
}
