// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestOnlyQueuesInWhichSomethingHappensAreMeasured(t *testing.T) {
	p, err := policy.Parse([]byte(`{"classes": [{"name": "all", "level": 4, "objective": {"wait": "10s"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	m, q, now := newMonitor(p), queue.New(queue.Config{LockFor: time.Minute}, 1), noon
	due := 0
	m.OnDue(func() { due++ })
	arrive := func() {
		as := []queue.Arrival{{Level: 4, Class: 1, Body: queue.Ref{At: 1, Size: 1}}}
		if _, err := m.Admit(now, q, as); err != nil {
			t.Fatal(err)
		}
		var out queue.Effects
		if err := q.Enqueue(now, as, make([]queue.SeqNo, 1), &out); err != nil {
			t.Fatal(err)
		}
		m.Arrived(now, as)
	}
	measure := func() {
		m.Measure(now, q)
		m.Note(now, 0)
	}
	arrive()
	if due != 1 || !m.Due() {
		t.Fatalf("an arrival: called %d times, due %t", due, m.Due())
	}
	measure()
	if !m.Due() {
		t.Error("a queue with a message that waits is not measured")
	}
	var out queue.Effects
	d, ok := q.Take(now, queue.TakeOptions{ReceiveAndDelete: true}, &out)
	if !ok {
		t.Fatal("nothing to take")
	}
	m.Delivered(now, &d)
	measure()
	if m.Due() {
		t.Error("an idle queue is measured")
	}
	now = now.Add(time.Minute)
	before := due
	if arrive(); due != before+1 {
		t.Errorf("another arrival: called %d times", due-before)
	}
}

func TestReplaceTakesOverAChangedPolicy(t *testing.T) {
	make := New(nil)
	build := func(meta string) *monitor {
		m, err := make("q", []byte(meta), nil)
		if err != nil {
			t.Fatal(err)
		}
		return m.(*monitor)
	}
	m := build(`{"kind": "queue", "queue": {}}`)
	m.Replace(build(`{"kind": "queue", "queue": {}}`))
	if m.Revision() != 0 || m.Due() {
		t.Errorf("the same policy: revision %d, due %t", m.Revision(), m.Due())
	}
	m.Replace(build(`{"kind": "queue", "queue": {"policy": {"classes": [{"name": "a", "level": 4, "limit": 1}]}}, "policyRevision": 3}`))
	if m.Revision() != 3 || !m.Due() || !m.limits {
		t.Errorf("another policy: revision %d, due %t, limits %t", m.Revision(), m.Due(), m.limits)
	}
	if m, err := make("t", []byte(`{"kind": "topic"}`), nil); m != nil || err != nil {
		t.Errorf("a topic has monitor %v, %v", m, err)
	}
	if _, err := make("q", []byte(`{"kind": "queue", "queue": {"policy": {"classes": 1}}}`), nil); err == nil {
		t.Error("a policy that cannot be read is taken")
	}
}

// tenClasses is a policy with ten classes that have objectives.
func tenClasses(b *testing.B) *policy.Policy {
	b.Helper()
	var cs []string
	for i := range 10 {
		cs = append(cs, fmt.Sprintf(`{"name": "c%d", "level": %d, "when": "plan = 'plan %d'", "objective": {"wait": "10s"}}`, i, 200-i, i))
	}
	p, err := policy.Parse([]byte(`{"classes": [` + strings.Join(cs, ",") + `]}`))
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkMonitor is what measuring one message costs, from its arrival to its
// settlement: in, out and done.
func BenchmarkMonitor(b *testing.B) {
	m := newMonitor(tenClasses(b))
	now := time.Unix(1_700_000_000, 0)
	q := queue.New(queue.Config{LockFor: time.Minute}, 1)
	as := []queue.Arrival{{Level: 3, Class: 10, Body: queue.Ref{At: 1, Size: 256}}}
	d := queue.Delivery{Token: queue.Token{Seq: 1, Nonce: 1}, Class: 10, FirstDelivery: true, EnqueuedAt: now}
	s := queue.Settled{Class: 10, EnqueuedAt: now, LockedAt: now}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(8 * time.Microsecond)
		if _, err := m.Admit(now, q, as); err != nil {
			b.Fatal(err)
		}
		m.Arrived(now, as)
		m.Delivered(now, &d)
		m.Settled(now, queueserver.Complete, s)
	}
}
