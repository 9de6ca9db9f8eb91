// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// Operations that name very many messages take turns with each other: a sender does not wait
// until all of those are done that were asked for before, and they are all answered.
func TestOperationsOnManyMessagesTakeTurns(t *testing.T) {
	const many, each = 20, 10_000
	tokens := make([]queue.Token, each)
	for i := range tokens {
		tokens[i] = queue.Token{Seq: queue.SeqNo(i + 1), Nonce: 1}
	}
	for name, ask := range map[string]func(r *rig, id ID, answer func(err error)) error{
		"settle": func(r *rig, id ID, answer func(error)) error {
			return r.s.Settle(&Settle{ID: id, Tokens: tokens, Done: func(errs []error) {
				if len(errs) != each {
					t.Fatalf("%d of %d are refused", len(errs), each)
				}
				answer(errs[each-1])
			}})
		},
		"renew": func(r *rig, id ID, answer func(error)) error {
			return Post(r.s, Renew{Queue: QueueID{Entity: id}, Tokens: tokens}, func(_ []time.Time, err error) { answer(err) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			id := r.define("q", minute)
			answers := 0
			for range many {
				if err := ask(r, id, func(err error) {
					if answers++; err == nil {
						t.Error("a lock that is none is settled")
					}
				}); err != nil {
					t.Fatal(err)
				}
			}
			stored := false
			if err := r.s.Send(&Send{Bodies: []*message.Message{text("x")}, Copies: []Copy{{ID: id}},
				Done: func(_ []queue.SeqNo, err error) { stored = err == nil }}); err != nil {
				t.Fatal(err)
			}
			r.step()
			r.sync()
			r.step()
			if !stored || answers > 2 {
				t.Errorf("after two steps: the message is stored: %t, %d of %d operations are answered", stored, answers, many)
			}
			for range 2 * many * each / 1000 {
				r.step()
				r.sync()
			}
			if answers != many {
				t.Errorf("%d of %d operations are answered", answers, many)
			}
		})
	}
}

// A consumer that leaves its session does not wait for what others settle, and to find that out
// nobody looks at all of their messages.
func TestDetachIsNotAboutWhatOthersSettle(t *testing.T) {
	const settlements, each, leaving = 100, 10_000, 300
	r := newRig(t, Options{})
	cfg := minute
	cfg.Sessions = true
	id := r.define("sessions", cfg)
	for i := range leaving {
		name := fmt.Sprint(i)
		if err := r.s.Send(&Send{Bodies: []*message.Message{text("x")},
			Copies: []Copy{{ID: id, Arrival: queue.Arrival{Session: name, InSession: true}}}, Done: func([]queue.SeqNo, error) {}}); err != nil {
			t.Fatal(err)
		}
	}
	r.settle()
	var takers []*taker
	for i := range leaving {
		k, name := &taker{r: r}, fmt.Sprint(i)
		r.accept(k, Attachment{ID: id}, &name, nil)
		takers = append(takers, k)
	}
	r.settle()
	tokens := make([]queue.Token, each)
	for i := range tokens {
		tokens[i] = queue.Token{Seq: queue.SeqNo(i + 1), Nonce: 1}
	}
	for range settlements {
		if err := r.s.Settle(&Settle{ID: id, Tokens: tokens, Disposition: Release, Done: func([]error) {}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range takers {
		k.c.Detach()
	}
	r.step()
	hq, _ := r.s.hostedQueue(id, Main)
	if len(hq.parked) == 0 || len(hq.consumers) > 0 {
		t.Errorf("%d settlements are parked, %d consumers have not left", len(hq.parked), len(hq.consumers))
	}
}

// What is settled without an answer is settled before the shard stops, and before a consumer
// leaves its session, however many messages it is.
func TestSettlementsOfManyMessagesAreDoneBeforeTheEnd(t *testing.T) {
	const many = 5 * atOnce
	for name, end := range map[string]func(r *rig, k *taker){
		"the consumer leaves": func(r *rig, k *taker) {
			k.c.Detach()
			r.settle()
		},
		"the shard stops": func(r *rig, _ *taker) {
			log, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- r.wal.Run(log) }() // ends with stop, and is waited for
			if err := r.s.manual().Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.s.manual().Stop(ErrStopped)
			stop()
			<-done
			r.crash(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			const long = 100 * 365 * 24 * time.Hour // a stop looks at the clock of the system
			id := r.define("sessions", queue.Config{LockFor: long, Sessions: true})
			for i := range many {
				if r.sendToSession(id, "s"); i%atOnce == 0 {
					r.settle()
				}
			}
			r.settle()
			k, session := &taker{r: r}, "s"
			r.accept(k, Attachment{ID: id}, &session, nil)
			r.settle()
			k.c.SetDeliveryLimit(many)
			r.settle()
			x := &Settle{ID: id, Consumer: k.c.id, Disposition: Complete}
			for _, d := range k.got {
				x.Tokens = append(x.Tokens, d.Token)
			}
			if err := r.s.Settle(x); err != nil {
				t.Fatal(err)
			}
			end(r, k)
			if n := r.counts(id); len(x.Tokens) != many || n != 0 {
				t.Errorf("%d of %d messages are settled, %d are there", len(x.Tokens), many, n)
			}
			r.check()
		})
	}
}

// Who asks for one thing about a queue does not wait for all that others ask about theirs.
func TestOperationsAboutOtherQueuesTakeTurns(t *testing.T) {
	const many = 500
	r := newRig(t, Options{})
	theirs, mine := r.define("theirs", minute), r.define("mine", minute)
	tokens := make([]queue.Token, 10*atOnce)
	for i := range tokens {
		tokens[i] = queue.Token{Seq: queue.SeqNo(i + 1), Nonce: 1}
	}
	for range many {
		if err := r.s.Settle(&Settle{ID: theirs, Tokens: tokens, Done: func([]error) {}}); err != nil {
			t.Fatal(err)
		}
	}
	r.step()
	steps, answered := 0, false
	if err := r.s.Settle(&Settle{ID: mine, Tokens: tokens, Done: func([]error) { answered = true }}); err != nil {
		t.Fatal(err)
	}
	for ; !answered && steps < 3*many; steps++ {
		r.step()
		r.sync()
	}
	if steps > 20 {
		t.Errorf("it was answered after %d steps", steps)
	}
}

// A request whose caller has left keeps nothing of what it names until it would be its turn.
func TestRequestThatIsGivenUpLeavesMemory(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("q", minute)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	seqs := make([]queue.SeqNo, 10_000)
	named := weak.Make(&seqs[0])
	if _, err := Do(ctx, r.s, CancelScheduled{Queue: QueueID{Entity: id}, Seqs: seqs}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	seqs = nil
	for range 3 {
		runtime.GC()
	}
	if named.Value() != nil {
		t.Error("the mailbox keeps what the request names")
	}
	r.settle() // it is dropped
}
