// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"fmt"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/filter/value"
	"github.com/triagemq/triagemq/internal/message"
)

// orderMessage is a message of the size and shape that shops send.
func orderMessage() *Envelope {
	d := message.Draft{
		MessageID: codec.String("order-4711"), Subject: "order.created", ContentType: "application/json",
		CorrelationID: codec.String("cart-9"),
		Application: []message.Pair{
			{Name: "Priority", Value: codec.String("High")},
			{Name: "tenant", Value: codec.String("contoso")},
			{Name: "amount", Value: codec.Int(250)},
			{Name: "weight", Value: codec.Double(1.5)},
			{Name: "express", Value: codec.Bool(true)},
		},
		Body: []byte("{}"),
	}
	return &Envelope{Message: d.Message()}
}

// BenchmarkFiveComparisons evaluates one filter; /fresh reads the properties
// out of the encoded message each time, as the first rule that is evaluated for
// a message does.
func BenchmarkFiveComparisons(b *testing.B) {
	x := mustParse(b, "Priority = 'High' AND tenant <> 'fabrikam' AND amount > 100 AND weight <= 2.5 AND sys.Label LIKE 'order.%'")
	m := orderMessage()
	for _, name := range []string{"read", "fresh"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if name == "fresh" {
					m.read = nil
				}
				if ok, err := x.Match(m); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

// BenchmarkCorrelationRules shows that the cost is independent of the number of
// rules.
func BenchmarkCorrelationRules(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rules := make([]Filter, n)
			for i := range rules {
				rules[i] = &Correlation{Subject: "order.created", Properties: map[string]value.Value{"tenant": value.MakeString(fmt.Sprint("tenant-", i))}}
			}
			rules[n/2].(*Correlation).Properties["tenant"] = value.MakeString("contoso")
			benchmarkSet(b, rules)
		})
	}
}

// BenchmarkSQLRules does the same for SQL whose equality the index can use.
func BenchmarkSQLRules(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rules := make([]Filter, n)
			for i := range rules {
				rules[i] = mustParse(b, fmt.Sprintf("tenant = 'tenant-%d' AND amount > 10", i))
			}
			rules[n/2] = mustParse(b, "tenant = 'contoso' AND amount > 10")
			benchmarkSet(b, rules)
		})
	}
}

// BenchmarkScannedRules is for rules without an equality to look up.
func BenchmarkScannedRules(b *testing.B) {
	rules := make([]Filter, 100)
	for i := range rules {
		rules[i] = mustParse(b, fmt.Sprintf("amount > %d AND amount <= %d", i*10, i*10+10))
	}
	benchmarkSet(b, rules)
}

// BenchmarkStepLimit shows how long an evaluation takes that runs out of steps.
func BenchmarkStepLimit(b *testing.B) {
	for _, tt := range expensive() {
		b.Run(tt.name, func(b *testing.B) {
			x := mustParse(b, tt.sql)
			m := &bag{user: tt.user}
			for b.Loop() {
				if _, err := x.Match(m); err == nil {
					b.Fatal("no error")
				}
			}
		})
	}
}

func benchmarkSet(b *testing.B, rules []Filter) {
	set := Compile(rules)
	m := orderMessage()
	hits := 0
	hit := func(int, error) { hits++ }
	b.ReportAllocs()
	for b.Loop() {
		set.Match(m, hit)
	}
	if hits != b.N {
		b.Fatalf("%d hits for %d messages, want one each", hits, b.N)
	}
}

func mustParse(t testing.TB, sql string) *Expr {
	t.Helper()
	x, err := Parse(sql, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
