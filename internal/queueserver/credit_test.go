// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// Consumers without credit are not looked at, and those with credit not when there is nothing.
func TestIdleConsumersAreNotLookedAt(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("q", queue.Config{LockFor: time.Minute})
	const idle = 100
	for range idle {
		r.attach(id, Main, queue.TakeOptions{})
	}
	hq, err := r.s.hostedQueue(id, Main)
	if err != nil {
		t.Fatal(err)
	}
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(idle)
	r.sendAll(id, make([]string, idle)...)
	r.settle()
	if n := len(hq.credits.consumers); len(k.got) != idle || n > 1 {
		t.Errorf("%d messages were delivered with %d consumers in the round, want %d and one", len(k.got), n, idle)
	}
	for range idle {
		r.attach(id, Main, queue.TakeOptions{}).c.SetDeliveryLimit(5)
	}
	r.settle()
	before := r.s.looked
	k.c.SetDeliveryLimit(idle + 1)
	r.settle()
	if looked := r.s.looked - before; looked > 1 {
		t.Errorf("%d consumers were looked at in an empty queue, want one", looked)
	}
}

// Consumers that accept some levels only may all have to be looked at: as many as the step has
// time for, and the rest in the next ones.
func TestConsumersAreLookedAtInSteps(t *testing.T) {
	const step, n = 2, 100
	r := newRig(t, Options{DispatchStep: step})
	id := r.define("q", queue.Config{LockFor: time.Minute})
	for i := range n {
		r.attach(id, Main, queue.TakeOptions{MinLevel: queue.Level(1 + i%5)}).c.SetDeliveryLimit(1)
		r.settle()
	}
	high := r.attach(id, Main, queue.TakeOptions{MinLevel: 9})
	high.c.SetDeliveryLimit(1)
	r.settle()
	r.send(id, 0, "low")
	for range 2*n/(step*looksPerMessage) + 4 {
		before := r.s.looked
		if r.step(); r.s.looked-before > step*looksPerMessage {
			t.Fatalf("%d consumers were looked at in one step, want %d at most", r.s.looked-before, step*looksPerMessage)
		}
		r.sync()
	}
	r.settle()
	before := r.s.looked
	if r.settle(); r.s.looked != before {
		t.Error("the consumers are looked at again and again")
	}
	r.send(id, 9, "high")
	r.settle()
	total := len(high.got)
	for _, c := range r.s.consumers {
		total += int(c.deliveredCount)
	}
	if total == 0 {
		t.Error("a message that some of them accept was not delivered")
	}
}

// Messages that come one by one are delivered to the consumers in turns.
func TestConsumersTakeTurns(t *testing.T) {
	for name, take := range map[string]queue.TakeOptions{
		"locking": {}, "deleting": {ReceiveAndDelete: true}, "of some levels": {MaxLevel: 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			id := r.define("q", queue.Config{LockFor: time.Minute})
			const consumers, rounds = 3, 4
			var ks []*taker
			for range consumers {
				k := r.attach(id, Main, take)
				k.c.SetDeliveryLimit(100)
				ks = append(ks, k)
			}
			r.settle()
			for i := range consumers * rounds {
				r.send(id, 4, fmt.Sprint(i))
				r.settle()
			}
			for i, k := range ks {
				if len(k.got) != rounds {
					t.Errorf("consumer %d got %d of %d messages, want %d", i, len(k.got), consumers*rounds, rounds)
				}
			}
		})
	}
}
