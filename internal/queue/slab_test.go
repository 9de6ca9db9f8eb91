// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// flood sends so many plain messages of two levels.
func (p *player) flood(n int) {
	as, seqs := make([]Arrival, n), make([]SeqNo, n)
	for i := range as {
		as[i] = Arrival{Body: p.body(10), Level: Level(p.rnd.IntN(2))}
	}
	p.note("flood of %d", n)
	if err := p.q.Enqueue(p.now, as, seqs, &p.out); err != nil {
		p.fatalf("enqueue: %v", err)
	}
	p.m.enqueue(p.now, as)
	p.absorb()
}

// Only a list of hundreds has a run. Here some are always that long, and messages
// leave them from the front, from the middle, and come back.
func TestLongLinesAgreeWithTheModel(t *testing.T) {
	base := Config{LockFor: 10 * time.Second, MaxFailures: 3}
	base.Order = Order{Objective: []time.Duration{time.Minute, 30 * time.Second}, AgingInterval: 17 * time.Second, AgingMaxLevel: 3}
	for _, d := range []Discipline{Strict, Aging, Deadline} {
		t.Run(fmt.Sprintf("discipline=%d", d), func(t *testing.T) {
			cfg := base
			cfg.Order.Discipline = d
			p := newPlayer(t, uint64(d), cfg)
			for range 8 {
				p.flood(400 + p.rnd.IntN(600))
				for range 2 {
					for range 30 {
						p.step()
					}
					for range p.rnd.IntN(500) {
						p.take()
						p.settle()
					}
					p.tick()
					p.verify()
				}
			}
		})
	}
}

// TestStragglersOfALongLineTakeLittleMemory defers one message in forty, so that
// every slab of the list keeps a few.
func TestStragglersOfALongLineTakeLittleMemory(t *testing.T) {
	q := New(Config{LockFor: time.Minute}, 1)
	var out Effects
	const sent = 400_000
	before := heapInUse()
	send(t, q, epochStart, Arrival{}, sent)
	for i := range sent {
		d, _ := q.Take(epochStart, TakeOptions{}, &out)
		settle := q.Complete
		if i%40 == 0 {
			settle = q.Defer
		}
		if _, err := settle(epochStart, d.Token, &out); err != nil {
			t.Fatal(err)
		}
		out.Reset()
	}
	n := q.Counts().Deferred
	if got := int64(heapInUse()-before) / n; n != sent/40 || got > 140 {
		t.Errorf("%d messages stay and take %d bytes each, want %d and at most 140", n, got, sent/40)
	}
	if err := q.Check(); err != nil {
		t.Error(err)
	}
}

// A hint must never be more than that: the message of a token has moved, and
// another is where it was.
func TestSettlingFindsAMessageThatHasMoved(t *testing.T) {
	q := New(Config{LockFor: time.Minute}, 1)
	var out Effects
	send(t, q, epochStart, Arrival{}, 2000)
	var held []Delivery
	for i := range 1500 {
		d := take(t, q, epochStart)
		if i%50 == 0 {
			held = append(held, d)
			continue
		}
		if _, err := q.Complete(epochStart, d.Token, &out); err != nil {
			t.Fatal(err)
		}
		send(t, q, epochStart, Arrival{}, 1)
	}
	for _, d := range held {
		s, err := q.Abandon(epochStart, d.Token, &out)
		if err != nil || s.Seq != d.Seq || s.Body != d.Body {
			t.Fatalf("abandoned %d: %+v, %v", d.Seq, s, err)
		}
	}
	for _, d := range held {
		if got := serve(t, q, epochStart); got.Seq != d.Seq {
			t.Fatalf("took %d, want %d", got.Seq, d.Seq)
		}
	}
}

func TestNoMessageHasNumberZero(t *testing.T) {
	q := New(Config{LockFor: time.Minute}, 1)
	var out Effects
	send(t, q, epochStart, Arrival{}, 2)
	serve(t, q, epochStart) // leaves a free place behind
	if d, err := q.TakeSeq(epochStart, 0, TakeOptions{}, &out); !errors.Is(err, ErrNotFound) {
		t.Errorf("took %+v, %v, want %v", d, err, ErrNotFound)
	}
}

// TestStragglersTakeLittleMemory leaves one message in ten behind.
func TestStragglersTakeLittleMemory(t *testing.T) {
	q := New(Config{LockFor: time.Minute}, 1)
	var out Effects
	const sent = 400_000
	before := heapInUse()
	for i := range sent {
		send(t, q, epochStart, Arrival{Level: Level(min(i%10, 1))}, 1)
		if q.LevelCount(1) == 0 {
			continue
		}
		d, _ := q.Take(epochStart, TakeOptions{MinLevel: 1}, &out)
		if _, err := q.Complete(epochStart, d.Token, &out); err != nil {
			t.Fatal(err)
		}
		out.Reset()
	}
	waiting := q.Counts().Ready
	if got := int64(heapInUse()-before) / waiting; waiting != sent/10 || got > 80 {
		t.Errorf("%d messages wait and take %d bytes each, want %d and at most 80", waiting, got, sent/10)
	}
}
