// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/shard"
)

// tenClasses is a policy whose first nine conditions fail for a message of the
// tenth class.
func tenClasses(b *testing.B) *policy.Policy {
	b.Helper()
	var cs []string
	for i := range 9 {
		cs = append(cs, fmt.Sprintf(`{"name": "c%d", "level": %d, "when": "plan = 'plan %d' AND kind <> 'report'", "objective": {"wait": "10s"}}`, i, 200-i, i))
	}
	cs = append(cs, `{"name": "last", "level": 3, "when": "plan = 'free' OR region LIKE 'eu%'", "objective": {"wait": "10s"}}`)
	p, err := policy.Parse([]byte(`{"classes": [` + strings.Join(cs, ",") + `]}`))
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkClassify is what ten rules add to the sending of a message.
func BenchmarkClassify(b *testing.B) {
	c := newClassifier(tenClasses(b))
	m := msg(strings.Repeat("x", 256), "plan", "free", "kind", "order", "region", "us-west", "tenant", "acme")
	b.ReportAllocs()
	for b.Loop() {
		if v := c.verdict(m); v.Class != 10 {
			b.Fatalf("class %d", v.Class)
		}
	}
}

// BenchmarkWatch is what measuring one message costs, from its arrival to its
// settlement: in, out and done.
func BenchmarkWatch(b *testing.B) {
	w := newWatch(tenClasses(b))
	now := time.Unix(1_700_000_000, 0)
	q := queue.New(queue.Config{LockFor: time.Minute}, 1)
	as := []queue.Arrival{{Level: 3, Class: 10, Body: queue.Ref{At: 1, Size: 256}}}
	d := queue.Delivery{Token: queue.Token{Seq: 1, Nonce: 1}, Class: 10, First: true, EnqueuedAt: now}
	s := queue.Settled{Class: 10, EnqueuedAt: now, LockedAt: now}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(8 * time.Microsecond)
		if _, err := w.Admit(now, q, as); err != nil {
			b.Fatal(err)
		}
		w.Arrived(now, as)
		w.Delivered(now, &d)
		w.Settled(now, shard.Complete, s)
	}
}
