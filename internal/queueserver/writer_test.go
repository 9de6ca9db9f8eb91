// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// guarded is a journal that knows when the shard works, and which bodies are
// damaged.
type guarded struct {
	journal.Journal
	r       *rig
	reads   int // by the shard's goroutine
	damaged map[journal.Position]bool
}

func (g *guarded) Read(ctx context.Context, reads []journal.Read) {
	if g.r.stepping.Load() {
		g.reads++
	}
	g.Journal.Read(ctx, reads)
	for i := range reads {
		if r := &reads[i]; g.damaged[r.At] {
			r.Err = fmt.Errorf("%w at %d", journal.ErrCorrupt, r.At)
		}
	}
}

// guard puts a guarded journal under the shard of r.
func (r *rig) guard() *guarded {
	g := &guarded{Journal: r.s.manual().Journal(), r: r, damaged: map[journal.Position]bool{}}
	r.s.manual().SetJournal(g)
	return g
}

// Lines A3 and A7: the goroutine of a shard never waits for a read, whatever is
// asked of it, also while nothing is cached.
func TestWriterNeverReads(t *testing.T) {
	r := newRig(t, Options{CacheBytes: 1})
	cfg := minute
	cfg.MaxFailures, cfg.DeadLetterExpired = 1, true
	id := r.define("orders", cfg)
	g := r.guard()
	send := func() {
		for i := range 3 {
			r.send(id, 4, fmt.Sprint(i))
		}
		r.settle()
	}
	note := []message.Change{{Name: "note", Value: codec.Int(1)}}
	for name, do := range map[string]func(k *taker){
		"receive and delete": func(*taker) {
			f := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: true})
			f.c.SetDeliveryLimit(1)
			r.settle()
			f.c.Detach()
		},
		"reject":                  func(k *taker) { k.settle(Reject, k.got...) },
		"abandon to death":        func(k *taker) { k.settle(Abandon, k.got...) },
		"lock runs out":           func(*taker) { r.now = r.now.Add(2 * time.Minute) },
		"abandon with properties": func(k *taker) { k.settleWith(Abandon, note) },
		"defer with properties":   func(k *taker) { k.settleWith(Defer, note) },
		"reject with properties":  func(k *taker) { k.settleWith(Reject, note) },
	} {
		send()
		k := r.attach(id, Main, queue.TakeOptions{})
		k.c.SetDeliveryLimit(1)
		r.settle()
		do(k)
		r.settle()
		k.c.Detach()
		if g.reads != 0 {
			t.Errorf("%s: %d reads by the goroutine of the shard", name, g.reads)
		}
		g.reads = 0
	}
}

// settleWith settles what the taker has with properties.
func (k *taker) settleWith(v Disposition, set []message.Change) {
	k.r.t.Helper()
	var tokens []queue.Token
	for _, d := range k.got {
		tokens = append(tokens, d.Token)
	}
	if err := k.r.s.Settle(&Settle{ID: k.c.queue.entity.ID, SubQueue: k.c.queue.part, Consumer: k.c.id, Tokens: tokens, Disposition: v,
		Properties: set, Done: func([]error) {}}); err != nil {
		k.r.t.Fatalf("settle: %v", err)
	}
	k.r.step()
}

// A body that cannot be read is an incident of its message. In
// receive-and-delete as otherwise the message goes to the dead letters with the
// reason, and everybody else is served.
func TestUnreadableBodyIsQuarantined(t *testing.T) {
	for name, deletes := range map[string]bool{"locked": false, "received and deleted": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{CacheBytes: 1})
			id := r.define("orders", minute)
			g := r.guard()
			for _, body := range []string{"a", "damaged", "c"} {
				r.send(id, 4, body)
				r.settle()
			}
			hq, _ := r.s.hostedQueue(id, Main)
			d, _ := hq.q.Lookup(2)
			g.damaged[journal.Position(d.Body.At)] = true
			k := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: deletes})
			k.c.SetDeliveryLimit(10)
			r.settle()
			var got []string
			for i := range k.got {
				if m, err := r.load(&k.got[i]); err == nil {
					for data := range m.Data() {
						got = append(got, string(data))
					}
				}
			}
			if want := []string{"a", "c"}; !slices.Equal(got, want) {
				t.Fatalf("delivered %q, want %q", got, want)
			}
			r.settle()
			dead := r.attach(id, DeadLetter, queue.TakeOptions{})
			dead.c.SetDeliveryLimit(10)
			r.settle()
			if len(dead.got) != 1 {
				t.Fatalf("%d dead letters, want the damaged message", len(dead.got))
			}
			m, err := r.load(&dead.got[0])
			if err != nil {
				t.Fatalf("the dead letter cannot be shown: %v", err)
			}
			v, _ := m.Property("DeadLetterReason")
			if got, _ := v.Str(); got != "MessageUnreadable" {
				t.Errorf("reason: got %q, want %q", got, "MessageUnreadable")
			}
		})
	}
}

// Number 13: a settlement that writes properties into many messages writes each body
// anew. It does so in steps, with the operations of others in between.
func TestSettlementWithPropertiesIsDoneInSteps(t *testing.T) {
	r := newRig(t, Options{CacheBytes: 64 << 20})
	id := r.define("orders", minute)
	const n, size = 200, 30 << 10
	for range n {
		r.send(id, 4, strings.Repeat("x", size))
		r.settle()
	}
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(n)
	r.settle()
	answered := false
	x := &Settle{ID: id, Disposition: Defer, Properties: []message.Change{{Name: "note", Value: codec.Int(7)}},
		Done: func(errs []error) { answered = errs == nil }}
	for _, d := range k.got {
		x.Tokens = append(x.Tokens, d.Token)
	}
	if err := r.s.Settle(x); err != nil {
		t.Fatal(err)
	}
	most := uint64(0)
	for range 1000 {
		before := r.s.view().Own + r.s.view().ForSnapshots
		r.step()
		if most = max(most, r.s.view().Own+r.s.view().ForSnapshots-before); answered {
			break
		}
		r.work()
		r.sync()
	}
	if !answered {
		t.Error("the settlement was not answered")
	}
	if most > editBytes+2*size {
		t.Errorf("one step wrote %d bytes, want about %d at most", most, editBytes)
	}
	r.settle()
	hq, _ := r.s.hostedQueue(id, Main)
	for seq := queue.SeqNo(1); seq <= n; seq++ {
		if d, _ := hq.q.Lookup(seq); d.State != queue.Deferred {
			t.Errorf("message %d is %v, want deferred", seq, d.State)
		}
	}
}

// A settlement whose messages would get too many properties writes nothing, and can be made
// again and again. It takes as many steps as if it wrote them.
func TestRefusedPropertiesTakeSteps(t *testing.T) {
	r := newRig(t, Options{CacheBytes: 64 << 20})
	id := r.define("orders", minute)
	const n, properties = 40, 6000
	named := func(first byte) (changes []message.Change, pairs []message.Pair) {
		for i := range properties {
			name := string([]byte{first, 'a' + byte(i%26), 'a' + byte(i/26%26), 'a' + byte(i/676)})
			changes, pairs = append(changes, message.Change{Name: name}), append(pairs, message.Pair{Name: name})
		}
		return changes, pairs
	}
	_, has := named('a')
	changes, _ := named('b')
	for range n {
		d := message.Draft{Application: has}
		done := func(_ []queue.SeqNo, err error) {
			if err != nil {
				t.Error(err)
			}
		}
		if err := r.s.Send(&Send{Bodies: []*message.Message{d.Message()}, Copies: []Copy{{ID: id}}, Done: done}); err != nil {
			t.Fatal(err)
		}
		r.settle()
	}
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(n)
	r.settle()
	refused := 0
	x := &Settle{ID: id, Disposition: Abandon, Properties: changes, Done: func(errs []error) {
		for _, err := range errs {
			if errors.Is(err, limits.ErrExceeded) {
				refused++
			}
		}
	}}
	for _, d := range k.got {
		x.Tokens = append(x.Tokens, d.Token)
	}
	if err := r.s.Settle(x); err != nil {
		t.Fatal(err)
	}
	steps := 0
	for ; refused == 0 && steps < 1000; steps++ {
		r.step()
	}
	if refused != n || len(k.got) != n {
		t.Fatalf("%d of %d messages are refused", refused, len(k.got))
	}
	if steps < n/4 {
		t.Errorf("%d settlements of %d properties are refused in %d steps", n, properties, steps)
	}
}
