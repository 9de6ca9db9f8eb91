// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
)

func (r *rig) savedState(addr string) (string, bool) {
	r.t.Helper()
	_, k := r.receive(addr, 1, ReceiverOptions{})
	d := <-k.ds
	m, err := d.Message()
	if err != nil {
		r.t.Fatal(err)
	}
	v, ok := m.Property(message.PropertyState)
	b, _ := v.Bytes()
	return string(b), ok
}

// saveState saves a state of the next message, and settles it.
func (r *rig) saveState(addr, state string, o Outcome) {
	r.t.Helper()
	rec, k := r.receive(addr, 1, ReceiverOptions{})
	d := <-k.ds
	if _, err := r.SaveState(r.t.Context(), addr, d.Token, []byte(state)); err != nil {
		r.t.Fatal(err)
	}
	r.settle(rec, d, o)
	rec.Close()
}

// What the one who examines dead letters has saved is no state of the worker that gets them back.
func TestRedriveLeavesTheStateOfTheDeadLetter(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	d := message.Draft{Body: []byte("a")}
	r.send("q", d.Message())
	r.deadLetter("q", 1)
	r.saveState("q/$DeadLetterQueue", "examined", Outcome{Disposition: Release})
	if got, err := r.Redrive(t.Context(), "q", Redrive{}); err != nil || got.Moved != 1 {
		t.Fatalf("%+v %v", got, err)
	}
	if s, ok := r.savedState("q"); ok {
		t.Errorf("the redriven message has the state %q", s)
	}
}

// A state is of the queue in which it was saved; and a dead letter has none.
func TestForwardedMessageAndItsDeadLetterHaveNoState(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "b"})
	r.queue(entity.Queue{Name: "q"})
	d := message.Draft{Body: []byte("a")}
	r.send("q", d.Message())
	r.saveState("q", "step 7 of q", Outcome{Disposition: Release})
	q := *r.Entity("q").Definition().Queue
	q.ForwardTo = "b"
	if _, err := r.UpdateQueue(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	r.deadLetter("b", 1)
	if s, ok := r.savedState("b/$DeadLetterQueue"); ok {
		t.Errorf("the dead letter has the state %q", s)
	}
}

// Who gives a message back with a newer state, as other clients and earlier pools do, is not
// overruled by one that was saved before.
func TestStateThatIsGivenBackIsTheLast(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	d := message.Draft{Body: []byte("a")}
	r.send("q", d.Message())
	r.saveState("q", "5", Outcome{Disposition: Release, Properties: []message.Change{{Name: message.PropertyState, Value: codec.Binary([]byte("9"))}}})
	if s, _ := r.savedState("q"); s != "9" {
		t.Errorf("the state is %q, want the one that was given back last, 9", s)
	}
}

// The states of dead letters count toward the size of the queue.
func TestStatesOfDeadLettersAreBounded(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q", MaxSizeInMegabytes: 1})
	const n = 40
	for range n {
		d := message.Draft{Body: []byte("a")}
		r.send("q", d.Message())
	}
	r.deadLetter("q", n)
	_, k := r.receive("q/$DeadLetterQueue", n, ReceiverOptions{})
	saved := 0
	for range n {
		d := <-k.ds
		if _, err := r.SaveState(t.Context(), "q/$DeadLetterQueue", d.Token, make([]byte, 64<<10)); err == nil {
			saved += 64 << 10
		}
	}
	if saved > 1<<20 {
		t.Errorf("%d bytes of states in a queue of at most 1 MiB", saved)
	}
}

// A queue whose messages wait for their time is no more idle than one with scheduled ones.
func TestQueueWithRetriesIsNotIdle(t *testing.T) {
	for _, how := range []string{"scheduled", "retry"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t)
				r.queue(entity.Queue{Name: "q", AutoDeleteOnIdle: entity.Duration(shortIdle)})
				d := message.Draft{Body: []byte("a")}
				if how == "scheduled" {
					d.Annotations = append(d.Annotations, message.Pair{Name: message.AnnotationScheduledEnqueueTime, Value: codec.Timestamp(time.Now().Add(time.Hour))})
					r.send("q", d.Message())
				} else {
					r.send("q", d.Message())
					rec, k := r.receive("q", 1, ReceiverOptions{})
					got := <-k.ds
					r.settle(rec, got, Outcome{Disposition: Abandon, RetryAfter: time.Hour})
					rec.Close()
				}
				time.Sleep(20 * time.Minute)
				if !r.exists("q") {
					t.Error("the queue was deleted, with the message that waits for its time")
				}
			})
		})
	}
}

// A saved state that cannot be read is not taken for none: work would begin again, and nobody knows.
func TestUnreadableStateIsNotSilentlyForgotten(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	d := message.Draft{Body: []byte("a")}
	r.send("q", d.Message())
	r.saveState("q", "step-seven-of-nine", Outcome{Disposition: Release})
	r = r.restart()
	r.damage("step-seven-of-nine")
	_, k := r.receive("q", 1, ReceiverOptions{})
	got := <-k.ds
	m, err := got.Message()
	if err != nil {
		return // it is a dead letter, say
	}
	if _, ok := m.Property(message.PropertyState); !ok && !got.Damaged() {
		t.Error("the message was delivered without its state, as if none had been saved")
	}
}
