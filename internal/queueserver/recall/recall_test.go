// SPDX-License-Identifier: Apache-2.0

package recall

import (
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// locks is a queue in which the tokens of levels are locked, and every ready message
// precedes those but the ones in first.
type locks struct {
	levels map[queue.Token]queue.Level
	first  map[queue.Token]bool
	looked int
}

func (l *locks) LockedLevel(_ time.Time, t queue.Token) (queue.Level, bool) {
	l.looked++
	level, ok := l.levels[t]
	return level, ok
}

func (l *locks) Precedes(_ time.Time, _ queue.SeqNo, t queue.Token) bool { return !l.first[t] }

// deliver adds deliveries of these levels to o, with numbers from the given one on.
func (l *locks) deliver(o *Deliveries, from int, levels ...queue.Level) (tokens []queue.Token) {
	for i, level := range levels {
		d := queue.Delivery{Token: queue.Token{Seq: queue.SeqNo(from + i)}, Level: level}
		l.levels[d.Token] = level
		o.Add(l, time.Time{}, &d)
		tokens = append(tokens, d.Token)
	}
	return tokens
}

func TestChoiceIsTheLowestLevelDeliveredLast(t *testing.T) {
	q := &locks{levels: make(map[queue.Token]queue.Level), first: make(map[queue.Token]bool)}
	var a, b Deliveries
	as := q.deliver(&a, 1, 4, 2, 2, 5)
	bs := q.deliver(&b, 10, 3, 2)
	next := func(level queue.Level, takeB queue.TakeOptions) (queue.Token, bool) {
		c := Choice{Queue: q, For: &queue.Delivery{Level: level}}
		c.Consider(&a, &queue.TakeOptions{})
		c.Consider(&b, &takeB)
		return c.Recall()
	}
	want := func(level queue.Level, want queue.Token) {
		t.Helper()
		if got, ok := next(level, queue.TakeOptions{}); !ok || got != want {
			t.Fatalf("for level %d: %v, %v; want %v", level, got, ok, want)
		}
	}
	if got, ok := next(2, queue.TakeOptions{}); ok {
		t.Fatalf("%v is recalled for a message of no higher level", got)
	}
	want(5, as[2])
	want(5, as[1]) // never the same twice
	delete(q.levels, bs[1])
	want(5, bs[0]) // the other was settled
	q.first[as[0]] = true
	if got, ok := next(5, queue.TakeOptions{}); ok {
		t.Fatalf("%v is recalled for a message that comes after it", got)
	}
	q.first[as[0]] = false
	want(5, as[0])

	// A consumer that does not take the message gives nothing back for it.
	more := q.deliver(&b, 20, 1)
	if got, ok := next(4, queue.TakeOptions{MaxLevel: 3}); ok {
		t.Fatalf("%v is recalled from a consumer that takes levels up to 3", got)
	}
	q.levels[more[0]] = 7
	b.LevelsChanged()
	if got, ok := next(4, queue.TakeOptions{}); ok {
		t.Fatalf("%v is recalled although its level is higher by now", got)
	}
}

func TestSettledDeliveriesAreRemoved(t *testing.T) {
	q := &locks{levels: make(map[queue.Token]queue.Level)}
	var o Deliveries
	for i := range 10_000 {
		for _, token := range q.deliver(&o, i, 1) {
			delete(q.levels, token)
		}
		if o.Len() > minPrune {
			t.Fatalf("%d deliveries, all but one settled", o.Len())
		}
	}
	if q.looked > 2*10_000 {
		t.Errorf("%d lookups for 10000 deliveries", q.looked)
	}
}

func TestRequests(t *testing.T) {
	var r Requests[int]
	ready := map[queue.SeqNo]bool{1: true, 2: true}
	isReady := func(seq queue.SeqNo) bool { return ready[seq] }
	token := func(n int) queue.Token { return queue.Token{Seq: queue.SeqNo(n)} }
	r.Set(1, Request[int]{Token: token(11), From: 7}, isReady)
	r.Set(2, Request[int]{Token: token(12), From: 8}, isReady)
	r.Released(token(12))
	if r.Get(1).Released || !r.Get(2).Released {
		t.Error("the wrong request is released")
	}
	if r.Decline(8, []queue.Token{token(11)}) {
		t.Error("a consumer declined what was asked of another")
	}
	if !r.Decline(7, []queue.Token{token(11), token(12)}) || r.Get(1) != nil || r.Get(2) == nil {
		t.Error("not exactly the declined request is removed")
	}
	ready[2] = false
	r.Set(1, Request[int]{Token: token(13), From: 7}, isReady)
	if r.Get(2) != nil {
		t.Error("the request for a message that is not ready is still there")
	}
}

// A consumer decides how many messages it keeps, and how often it declines: each time few of
// them are looked at, the last ones first, and then those before them.
func TestFewDeliveriesAreLookedAt(t *testing.T) {
	const rounds, more = 300, 200
	const many = mostLooked + more
	q := &locks{levels: make(map[queue.Token]queue.Level)}
	var a, b Deliveries
	tokens := append(q.deliver(&b, many, 1, 1), q.deliver(&a, 0, make([]queue.Level, many)...)...)
	for i := range rounds {
		q.looked = 0
		c := Choice{Queue: q, For: &queue.Delivery{Level: 5}}
		c.Consider(&a, &queue.TakeOptions{})
		if c.Exhausted() != (i <= more) {
			t.Fatalf("recall %d: exhausted is %v", i, c.Exhausted())
		}
		c.Consider(&b, &queue.TakeOptions{})
		if got, ok := c.Recall(); !ok || got != tokens[len(tokens)-1-i] || q.looked > mostLooked {
			t.Fatalf("recall %d: %v, %v; %d deliveries were looked at", i, got, ok, q.looked)
		}
	}
}

// Nor do requests that wait for an answer make each further one, or its answer, longer.
func TestManyRequests(t *testing.T) {
	const many = 10_000
	var r Requests[int]
	asked := 0
	for i := range many {
		n := queue.SeqNo(i)
		r.Set(n, Request[int]{Token: queue.Token{Seq: n}}, func(queue.SeqNo) bool { asked++; return true })
	}
	r.Set(0, Request[int]{Token: queue.Token{Seq: many}}, func(queue.SeqNo) bool { return true }) // the first is not asked for any more
	if r.Decline(0, []queue.Token{{Seq: 0}}) {
		t.Error("a request that was replaced is declined")
	}
	if asked > 10*many || len(r.byToken) != many || len(r.bySeq) != many {
		t.Errorf("%d looks for %d requests; %d by message, %d by token", asked, many, len(r.bySeq), len(r.byToken))
	}
	if !r.Decline(0, []queue.Token{{Seq: 1}, {Seq: many}}) || r.Get(0) != nil || r.Get(1) != nil || len(r.byToken) != many-2 {
		t.Errorf("two are declined, and %d are left", len(r.byToken))
	}
}
