// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

func TestSafeMessageTakenBehindANewOne(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("q", queue.Config{LockFor: time.Minute})
	r.send(id, 1, "old")
	r.settle()
	k := r.attach(id, Main, queue.TakeOptions{})

	// In one step the consumer takes the new message, which is not durable,
	// and then the old one, which is.
	r.send(id, 9, "new")
	k.c.SetDeliveryLimit(2)
	r.step()
	if len(k.got) != 0 {
		t.Fatalf("before the sync: %v delivered, want none", k.bodies())
	}
	r.settle()
	if want := []string{"new", "old"}; !slices.Equal(k.bodies(), want) {
		t.Fatalf("after the sync: %v delivered, want %v", k.bodies(), want)
	}
}

// recycler is a taker that gives every slice back as soon as it has read it.
type recycler struct {
	taker
	last []Delivery
}

func (k *recycler) Deliver(ds []Delivery) {
	k.taker.Deliver(ds)
	k.last = ds
	k.c.Recycle(ds)
}

// A slice that comes back is empty, so that it keeps no message alive, and what it
// is used for next is not mixed up with what was in it.
func TestRecycledSlicesAreClean(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("q", queue.Config{LockFor: time.Minute})
	k := &recycler{taker: taker{r: r}}
	if err := r.s.Attach(Attachment{ID: id, Sink: k}, func(c *Consumer, err error) { k.c = c }); err != nil {
		t.Fatalf("attach: %v", err)
	}
	r.settle()
	k.c.SetDeliveryLimit(100)
	var want []string
	for i := range 10 {
		for j := range i + 1 {
			want = append(want, fmt.Sprint(i, ".", j))
			r.send(id, 4, want[len(want)-1])
		}
		r.settle()
		for _, d := range k.last {
			if d.msg != nil || d.Seq != 0 {
				t.Fatalf("a slice that was given back holds message %d", d.Seq)
			}
		}
	}
	if got := k.bodies(); !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
}

func TestMessageThatStartsItsKeyWaitsUntilThatIsDurable(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", queue.Config{LockFor: time.Minute, Order: queue.Order{Fair: true, LevelOrder: queue.FinishFirst}})
	for _, body := range []string{"first", "second"} {
		err := r.s.Send(&Send{
			Bodies: []*message.Message{text(body)},
			Copies: []Copy{{ID: id, Arrival: queue.Arrival{Key: "run"}}},
			Done:   func([]queue.SeqNo, error) {},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.settle()
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	r.step()
	if len(k.got) != 0 {
		t.Fatal("delivered before it was durable that its key is started")
	}
	r.settle()
	k.c.SetDeliveryLimit(2)
	r.step() // the key is started: nothing to wait for
	if got, want := k.bodies(), []string{"first", "second"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// A receiver with credit for everything gets it in steps, and who has a few messages in
// another queue does not wait for all of it; a drain ends after the last step (A3).
func TestHandOutInSteps(t *testing.T) {
	const messages, step = 1000, 100
	r := newRig(t, Options{HandOutStep: step, SnapshotAfter: 1 << 30})
	many, few := r.define("many", minute), r.define("few", minute)
	r.sendMany(many, messages)
	r.sendMany(few, 3)
	greedy, modest := r.attach(many, Main, queue.TakeOptions{}), r.attach(few, Main, queue.TakeOptions{})
	for _, err := range []error{greedy.c.SetDeliveryLimit(messages + 1), greedy.c.Drain(), greedy.c.SetDeliveryLimit(2 * messages), modest.c.SetDeliveryLimit(3)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; len(greedy.got) < messages; n++ {
		before := len(greedy.got)
		r.step()
		if got := len(greedy.got) - before; got > step || got == 0 {
			t.Fatalf("step %d handed out %d messages", n, got)
		}
		if n == 3 && len(modest.got) != 3 {
			t.Fatalf("after %d steps the other receiver has %d messages", n, len(modest.got))
		}
		if at, due := r.s.NextDeadline(); len(greedy.got) < messages && (!due || at.After(r.now)) {
			t.Fatalf("%d messages were handed out and nobody goes on", len(greedy.got))
		}
	}
	r.step()
	if greedy.drained != 1 {
		t.Error("the drain has no end")
	}
	r.send(many, 0, "after the drain")
	r.settle()
	if len(greedy.got) != messages+1 {
		t.Error("credit that came after the drain is void")
	}
}
