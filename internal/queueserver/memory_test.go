// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// fillMemory sends batches to a queue until they are refused, and returns how many
// messages were stored.
func (r *rig) fillMemory(id ID, a func(i int) queue.Arrival) (stored int) {
	r.t.Helper()
	const batch = 100
	for {
		x := &Send{Bodies: []*message.Message{text("")}}
		for i := range batch {
			x.Copies = append(x.Copies, Copy{ID: id, Arrival: a(stored + i)})
		}
		var got error
		x.Done = func(_ []queue.SeqNo, err error) { got = err }
		if err := r.s.Send(x); err != nil {
			r.t.Fatal(err)
		}
		r.settle()
		if got != nil {
			if !errors.Is(got, ErrMemory) || !errors.Is(got, queue.ErrFull) {
				r.t.Fatalf("refused with %v, want %v", got, ErrMemory)
			}
			return stored
		}
		if stored += batch; stored > 1_000_000 {
			r.t.Fatal("the memory is never full")
		}
	}
}

// Senders are refused when the messages of all queues take the memory that there is, and
// nothing of a refused batch is stored, in no queue. What is stored is served, settled and
// dead-lettered, and moves to other queues; then senders are admitted again.
func TestFullMemoryRefusesSenders(t *testing.T) {
	const limit = 1 << 20
	account := budget.New(limit)
	r := newRig(t, Options{Stored: account})
	id, other := r.define("q", minute), r.define("other", minute)
	stored := r.fillMemory(id, func(int) queue.Arrival { return queue.Arrival{} })
	if most := limit / 56; stored > most || stored < most/2 {
		t.Errorf("%d messages are stored in %d bytes", stored, limit)
	}
	if used := account.Used(); used > limit+limit/16 {
		t.Errorf("%d bytes are charged of %d", used, limit)
	}
	counts := func(id ID, part SubQueue) int64 { return r.s.entities[id].parts[part].q.Counts().Total() }
	for i := 0; r.trySend(text("x"), queue.Arrival{}, id, other) == nil; i++ {
		if i > 10_000 {
			t.Fatal("the last bytes are never used up")
		}
	}
	one, two := counts(id, Main), counts(other, Main)
	if err := r.trySend(text("x"), queue.Arrival{Session: "s", InSession: true}, id, other); !errors.Is(err, ErrMemory) {
		t.Errorf("one more: %v, want %v", err, ErrMemory)
	}
	if counts(id, Main) != one || counts(other, Main) != two {
		t.Error("something of a refused message is stored")
	}
	r.check()

	k := r.attach(id, Main, queue.TakeOptions{})
	r.s.SetDeliveryLimit(k.c.id, 500)
	r.settle()
	if len(k.got) < 300 {
		t.Fatalf("%d messages are delivered", len(k.got))
	}
	k.settle(Reject, k.got[:100]...)
	moved := make([]error, 100)
	for i := range moved {
		d := &k.got[100+i]
		err := r.s.Send(&Send{
			Bodies: []*message.Message{text("y")}, Copies: []Copy{{ID: other, Arrival: queue.Arrival{Key: fmt.Sprint("key", i)}}},
			Settle: Locked{ID: id, Token: d.Token}, Moved: true, Done: func(_ []queue.SeqNo, err error) { moved[i] = err },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.settle()
	if err := errors.Join(moved...); err != nil {
		t.Errorf("messages that move: %v", err)
	}
	if dead := counts(id, DeadLetter); dead != 100 {
		t.Errorf("%d dead letters", dead)
	}
	if counts(other, Main) != two+100 {
		t.Errorf("%d messages have moved", counts(other, Main)-two)
	}
	r.check()
	for counts(id, Main) > 0 {
		ds := k.got
		k.got = nil
		k.settle(Complete, ds...)
		r.s.SetDeliveryLimit(k.c.id, k.c.deliveredCount+1000)
		r.settle()
	}
	if err := r.trySend(text("x"), queue.Arrival{}, id, other); err != nil {
		t.Errorf("when messages were consumed: %v", err)
	}
	r.check()
}

// A start charges what it finds, also if it is more than the present limit. Senders are
// refused then, and consumers served.
func TestStartWithMoreThanTheMemory(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("q", minute)
	r.sendMany(id, 5000)
	r.settle()
	account := budget.New(100 << 10)
	r.opts.Stored = account
	r.crash(1)
	r.settle()
	if used := account.Used(); used < 5000*56 {
		t.Errorf("%d bytes are charged for 5000 messages", used)
	}
	if n := r.fillMemory(id, func(int) queue.Arrival { return queue.Arrival{} }); n > 200 {
		t.Errorf("%d messages more are stored", n)
	}
	r.check()
	if err := r.s.Drop([]ID{id}, func(error) {}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if used := account.Used(); used > 2*budget.New(100<<10).Limit()/16 {
		t.Errorf("%d bytes are charged when the queue was dropped", used)
	}
	r.check()
}

// Message ids are remembered after their messages have gone, and states of sessions stay
// without messages: these are refused, too.
func TestWhatIsRememberedTakesMemory(t *testing.T) {
	r := newRig(t, Options{Stored: budget.New(256 << 10)})
	id := r.define("q", queue.Config{LockFor: time.Minute, DuplicateWindow: time.Hour})
	sent := 0
	for ; ; sent++ {
		err := r.trySend(text(""), queue.Arrival{MessageID: fmt.Sprint("id", sent)}, id)
		if errors.Is(err, ErrMemory) {
			break
		}
		if err != nil || sent > 10_000 {
			t.Fatalf("after %d messages: %v", sent, err)
		}
		q := r.s.entities[id].parts[Main].q
		if err := Post(r.s, Remove{Queue: QueueID{Entity: id}, Seqs: []queue.SeqNo{q.Last()}}, func([]error, error) {}); err != nil {
			t.Fatal(err)
		}
	}
	if sent < 1000 {
		t.Errorf("%d messages were sent", sent)
	}
	r.check()
	r.now = r.now.Add(2 * time.Hour)
	for range 20 {
		r.settle()
	}
	if err := r.trySend(text(""), queue.Arrival{MessageID: "more"}, id); err != nil {
		t.Errorf("when the ids are forgotten: %v", err)
	}
	r.check()
}

// Messages that wait already take little more memory when they move to another queue, or when
// a policy gives each of them a fair key of its own: what that would take is not there.
func TestWhatIsStoredDoesNotOutgrowTheMemory(t *testing.T) {
	const limit = 1 << 20
	for _, tt := range []struct {
		name string
		grow func(r *rig, id, other ID, stored int) (refused int)
	}{
		{"moved", func(r *rig, id, other ID, stored int) (refused int) {
			k := r.attach(id, Main, queue.TakeOptions{})
			r.s.SetDeliveryLimit(k.c.id, uint64(stored))
			r.settle()
			for i := range k.got {
				if err := r.s.Send(&Send{
					Bodies: []*message.Message{text("")}, Copies: []Copy{{ID: other, Arrival: queue.Arrival{Key: fmt.Sprint("key", i)}}},
					Settle: Locked{ID: id, Token: k.got[i].Token}, Moved: true, Done: func(_ []queue.SeqNo, err error) {
						if err != nil {
							refused++
						}
					},
				}); err != nil {
					r.t.Fatal(err)
				}
				if i%100 == 0 {
					r.settle()
				}
			}
			r.settle()
			return refused
		}},
		{"classified", func(r *rig, id, _ ID, stored int) (refused int) {
			for seq := queue.SeqNo(1); seq <= queue.SeqNo(stored); {
				o := Reclassify{ID: id}
				for ; seq <= queue.SeqNo(stored) && len(o.Changes) < 100; seq++ {
					o.Changes = append(o.Changes, Reclassified{Seq: seq, To: queue.Classification{Level: 4, Key: fmt.Sprint("key", seq)}})
				}
				if err := Post(r.s, o, func(reply ReclassifyReply, err error) {
					if refused += reply.Keyless; err != nil || len(reply.Missing) > 0 {
						r.t.Errorf("%d are missing: %v", len(reply.Missing), err)
					}
				}); err != nil {
					r.t.Fatal(err)
				}
				r.settle()
			}
			return refused
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			account := budget.New(limit)
			r := newRig(t, Options{Stored: account})
			fair := queue.Config{LockFor: time.Hour, Order: queue.Order{Fair: true}}
			id, other := r.define("q", fair), r.define("other", fair)
			stored := r.fillMemory(id, func(int) queue.Arrival { return queue.Arrival{} })
			refused := tt.grow(r, id, other, stored)
			locks := 64 * r.s.entities[id].parts[Main].q.Counts().Locked
			if most := limit + limit/4 + locks; account.Used() > most {
				t.Errorf("%d bytes are charged of %d, %d of them for locks", account.Used(), limit, locks)
			}
			if n := int(r.counts(id) + r.counts(other)); n != stored || refused == 0 {
				t.Errorf("%d of %d messages are there, %d were refused", n, stored, refused)
			}
			r.check()
		})
	}
}

// An order for which there is no memory is refused before anything changes, and is taken when
// some of the messages are gone.
func TestAnotherOrderNeedsMemory(t *testing.T) {
	account := budget.New(1 << 20)
	r := newRig(t, Options{Stored: account})
	id := r.define("q", minute)
	r.fillMemory(id, func(int) queue.Arrival { return queue.Arrival{} })
	configure := func() (got error) {
		fair := map[SubQueue]queue.Config{Main: {LockFor: time.Minute, Order: queue.Order{Fair: true}}}
		if err := Post(r.s, Configure{ID: id, Configs: fair}, func(_ struct{}, err error) { got = err }); err != nil {
			t.Fatal(err)
		}
		r.settle()
		return got
	}
	if err := configure(); !errors.Is(err, ErrMemory) {
		t.Errorf("while the memory is full: %v, want %v", err, ErrMemory)
	}
	if q := r.s.entities[id].parts[Main].q; q.Config().Order.Fair || !q.InForce() {
		t.Error("the order has changed")
	}
	if err := Post(r.s, Purge{Queue: QueueID{Entity: id}, Max: int(r.counts(id)) / 2}, nil); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		r.settle()
	}
	if err := configure(); err != nil {
		t.Errorf("when a half is purged: %v", err)
	}
	r.check()
}

// fillQueue sends empty messages to a queue until they are refused, and returns how many it has.
func (r *rig) fillQueue(id ID) int {
	return r.fillMemory(id, func(int) queue.Arrival { return queue.Arrival{} })
}

// What one queue's messages become takes more than there was: locks, or dead letters with a
// reason. Its senders are refused. Those of queues with few messages are not, also after a
// restart, and what these have of the reserve is given back.
func TestWhatMessagesBecomeLocksNobodyOut(t *testing.T) {
	const limit = 1 << 20
	for name, settle := range map[string]func(k *taker){
		"locked":       func(*taker) {},
		"dead letters": func(k *taker) { k.settle(Reject, k.got...) },
		"all but one of each slab are dead letters": func(k *taker) {
			for i := range k.got {
				if i%64 != 0 {
					k.settle(Reject, k.got[i])
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{Stored: budget.New(limit), Reserve: budget.New(limit / budget.MessagesReserve)})
			id, other, third := r.define("q", minute), r.define("other", minute), r.define("third", minute)
			stored := r.fillQueue(id)
			k := r.attach(id, Main, queue.TakeOptions{})
			r.s.SetDeliveryLimit(k.c.id, uint64(stored))
			for len(k.got) < stored {
				r.settle()
			}
			settle(k)
			r.settle()
			if used := r.opts.Stored.Used(); used < limit {
				t.Fatalf("only %d bytes are charged: the test shows nothing", used)
			}
			others := func() {
				t.Helper()
				for range 500 {
					if err := r.trySend(text(""), queue.Arrival{}, other); err != nil {
						t.Fatalf("to another queue: %v", err)
					}
				}
			}
			others()
			if err := r.trySend(text(""), queue.Arrival{}, id); !errors.Is(err, ErrMemory) {
				t.Errorf("to the full queue: %v, want %v", err, ErrMemory)
			}
			if n, m := r.fillQueue(third), r.fillQueue(other); n < 500 || n+m > limit/budget.MessagesReserve/61 {
				t.Errorf("%d and %d messages are stored in the reserve", n, m)
			}
			if err := r.trySend(text(""), queue.Arrival{}, r.define("last", minute)); err != nil {
				t.Errorf("to a queue that was empty, when others use the reserve: %v", err)
			}
			r.check()
			if name == "locked" {
				return // until the restart
			}
			r.crash(1)
			r.settle()
			if err := r.trySend(text(""), queue.Arrival{}, r.define("after the restart", minute)); err != nil {
				t.Errorf("after a restart: %v", err)
			}
			r.check()
		})
	}
}

// What messages have of the reserve moves with them to another queue: otherwise a queue that
// forwards could use it again and again. It is given back when they are gone.
func TestMovedMessagesKeepTheirReserve(t *testing.T) {
	const limit = 1 << 20
	r := newRig(t, Options{Stored: budget.New(limit)})
	id, small, target := r.define("q", minute), r.define("small", minute), r.define("target", minute)
	stored := r.fillQueue(id)
	for deadline := 0; r.opts.Stored.Used() < limit; deadline++ {
		if deadline > 100 {
			t.Fatal("the locks never take the memory")
		}
		k := r.attach(id, Main, queue.TakeOptions{})
		r.s.SetDeliveryLimit(k.c.id, uint64(stored))
		r.settle()
	}
	r.fillQueue(small)
	before := r.s.entities[small].reserved
	if before < limit/budget.MessagesReserve/4 {
		t.Fatalf("a queue with few messages gets %d bytes of the reserve", before)
	}
	k := r.attach(small, Main, queue.TakeOptions{})
	r.s.SetDeliveryLimit(k.c.id, 100)
	r.settle()
	for _, d := range k.got {
		if err := r.s.Send(&Send{
			Bodies: []*message.Message{text("")}, Copies: []Copy{{ID: target}},
			Settle: Locked{ID: small, Token: d.Token}, Moved: true, Done: func(_ []queue.SeqNo, err error) {
				if err != nil {
					t.Errorf("a message that moves: %v", err)
				}
			},
		}); err != nil {
			t.Fatal(err)
		}
	}
	r.settle()
	if n := r.s.entities[target].reserved; len(k.got) != 100 || n < 100*56 || n+r.s.entities[small].reserved != before {
		t.Errorf("%d messages have moved, with %d bytes of the reserve; %d are left of %d", len(k.got), n, r.s.entities[small].reserved, before)
	}
	r.check()
	for _, id := range []ID{id, small, target} {
		if err := r.s.Drop([]ID{id}, func(error) {}); err != nil {
			t.Fatal(err)
		}
	}
	r.settle()
	if used := r.s.opts.Reserve.Used(); used > 4 {
		t.Errorf("%d bytes of the reserve are used when there are no messages", used)
	}
}
