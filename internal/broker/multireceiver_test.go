// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"
	"slices"
	"testing"

	"github.com/triagemq/triagemq/internal/entity"
)

type setSink struct {
	ds      chan setDelivery
	drained chan struct{}
	ended   chan error
}

type setDelivery struct {
	source int
	d      Delivery
}

func newSetSink() *setSink {
	return &setSink{ds: make(chan setDelivery, 1000), drained: make(chan struct{}, 10), ended: make(chan error, 1)}
}

func (k *setSink) Deliver(source int, d Delivery) { k.ds <- setDelivery{source, d} }
func (k *setSink) Drained()                       { k.drained <- struct{}{} }
func (k *setSink) Ended(err error)                { k.ended <- err }

// P4: one pool over several queues always takes from the better one.
func TestSetServesTheFirstQueueThatHasSomething(t *testing.T) {
	r := start(t)
	names := []string{"urgent", "high", "normal", "low"} // they lie in both shards
	for _, name := range names {
		r.queue(entity.Queue{Name: name})
	}
	for i := range 3 {
		for _, name := range slices.Backward(names) {
			r.send(name, msg(fmt.Sprint(name, i)))
		}
	}
	k := newSetSink()
	s, err := r.OpenSet(t.Context(), names, ByOrder, ReceiverOptions{}, k)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 12 {
		s.SetDeliveryLimit(uint64(i + 1))
		got := <-k.ds
		want := fmt.Sprint(names[i/3], i%3)
		if b := body(t, got.d); b != want || got.source != i/3 {
			t.Fatalf("message %d: %q of queue %d, want %q", i, b, got.source, want)
		}
	}
	// All are empty: the set waits at all of them and takes what comes.
	s.SetDeliveryLimit(13)
	r.send("low", msg("late"))
	if got := <-k.ds; body(t, got.d) != "late" {
		t.Fatalf("got %q", body(t, got.d))
	}
	for _, name := range names {
		rt, err := r.Runtime(t.Context(), name)
		if err != nil || rt.Locked != rt.Active {
			t.Fatalf("%s: %d locked of %d (%v)", name, rt.Locked, rt.Active, err)
		}
	}
}

func TestSetByLevelServesTheBestMessageOfAll(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "a"})
	r.queue(entity.Queue{Name: "b"})
	r.send("a", msg("a low", "Priority", "Low"))
	r.send("b", msg("b high", "Priority", "High"))
	r.send("a", msg("a normal"))
	k := newSetSink()
	s, err := r.OpenSet(t.Context(), []string{"a", "b"}, ByLevel, ReceiverOptions{}, k)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.SetDeliveryLimit(3)
	for _, want := range []string{"b high", "a normal", "a low"} {
		if got := body(t, (<-k.ds).d); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

func TestSetEndsWithItsQueue(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "a"})
	k := newSetSink()
	if _, err := r.OpenSet(t.Context(), []string{"a"}, ByOrder, ReceiverOptions{}, k); err != nil {
		t.Fatal(err)
	}
	if err := r.DeleteQueue(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	<-k.ended
}

func TestSetDrains(t *testing.T) {
	r := start(t)
	names := []string{"urgent", "high", "normal", "low"}
	for _, name := range names {
		r.queue(entity.Queue{Name: name})
	}
	r.send("low", msg("l"))
	r.send("urgent", msg("u"))
	k := newSetSink()
	s, err := r.OpenSet(t.Context(), names, ByOrder, ReceiverOptions{}, k)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.SetDeliveryLimit(5)
	s.Drain()
	<-k.drained
	if got := []string{body(t, (<-k.ds).d), body(t, (<-k.ds).d)}; !slices.Equal(got, []string{"u", "l"}) {
		t.Errorf("got %q, want u and l", got)
	}
	// What was allowed is void: nothing comes before it is allowed again.
	r.send("high", msg("h"))
	s.Drain()
	<-k.drained
	if len(k.ds) != 0 {
		t.Errorf("%q came without an allowance", body(t, (<-k.ds).d))
	}
	s.SetDeliveryLimit(3)
	if got := body(t, (<-k.ds).d); got != "h" {
		t.Errorf("got %q, want h", got)
	}
	// A wait that is called off ends at once.
	s.SetDeliveryLimit(4)
	s.Drain()
	<-k.drained
	for _, name := range names {
		o, err := r.Objectives(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range o.Operations {
			if op.Operation == "emptyWait" && op.Total > 0 {
				t.Errorf("%s: the set's own looks count as %d waits", name, op.Total)
			}
		}
	}
}

// By level counts what a queue would deliver: not what the receiver does not want,
// nor what stands behind something else by the discipline of its queue.
func TestSetByLevelCountsWhatCanBeHandedOut(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "a"})
	r.queue(entity.Queue{Name: "b"})
	r.send("a", msg("a high", "Priority", "high"))
	r.send("a", msg("a background", "Priority", "background"))
	r.send("b", msg("b low", "Priority", "low"))
	k := newSetSink()
	s, err := r.OpenSet(t.Context(), []string{"a", "b"}, ByLevel, ReceiverOptions{MaxLevel: 3}, k)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, want := range []string{"b low", "a background"} {
		s.SetDeliveryLimit(uint64(i + 1))
		if got := body(t, (<-k.ds).d); got != want {
			t.Errorf("message %d is %q, want %q", i, got, want)
		}
	}

	r.ranked("due", `{"discipline": "deadline", "classes": [
		{"name": "due", "level": 1, "when": "kind = 'due'", "objective": {"wait": "1s"}}, {"name": "rest", "level": 9}]}`)
	r.send("due", msg("rest"))
	r.send("due", msg("due", "kind", "due"))
	r.send("b", msg("b normal"))
	by, err := r.OpenSet(t.Context(), []string{"due", "b"}, ByLevel, ReceiverOptions{}, k)
	if err != nil {
		t.Fatal(err)
	}
	defer by.Close()
	for i, want := range []string{"b normal", "due", "rest"} {
		by.SetDeliveryLimit(uint64(i + 1))
		if got := body(t, (<-k.ds).d); got != want {
			t.Errorf("message %d is %q, want %q", i, got, want)
		}
	}
}

// What comes to a set that is over goes back, at once and uncounted.
func TestSetThatIsOverGivesBackWhatComes(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	s, err := r.OpenSet(t.Context(), []string{"q"}, ByOrder, ReceiverOptions{}, newSetSink())
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	r.send("q", msg("a"))
	_, k := r.receive("q", 1, ReceiverOptions{})
	d := <-k.ds
	s.sources[0].Deliver([]Delivery{d}) // as a shard does that has not heard of the end
	if rt, err := r.Runtime(t.Context(), "q"); err != nil || rt.Locked != 0 || rt.Active != 1 {
		t.Fatalf("%d messages, %d of them locked, %v, want 1 and 0", rt.Active, rt.Locked, err)
	}
	if _, k = r.receive("q", 1, ReceiverOptions{}); (<-k.ds).Failures != 0 {
		t.Error("it counts as failed, and nobody has got it")
	}
}

// The same for a delivery that waits in the set when it ends.
func TestSetThatEndsGivesBackWhatWaits(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.queue(entity.Queue{Name: "gone"})
	s, err := r.OpenSet(t.Context(), []string{"gone", "q"}, ByOrder, ReceiverOptions{}, newSetSink())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r.send("q", msg("a"))
	_, k := r.receive("q", 1, ReceiverOptions{})
	d := <-k.ds
	s.mu.Lock() // both at once, the end first
	s.events = append(s.events, setEvent{source: 0, ended: ErrNotFound}, setEvent{source: 1, ds: []Delivery{d}})
	s.mu.Unlock()
	s.notify()
	if err := <-s.sink.(*setSink).ended; err == nil {
		t.Fatal("it ended without a reason")
	}
	if rt, err := r.Runtime(t.Context(), "q"); err != nil || rt.Locked != 0 || rt.Active != 1 {
		t.Fatalf("%d messages, %d of them locked, %v, want 1 and 0", rt.Active, rt.Locked, err)
	}
}
