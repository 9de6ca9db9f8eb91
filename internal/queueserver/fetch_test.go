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
	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/bodies"
)

// sendAll stores messages with the given bodies.
func (r *rig) sendAll(id ID, bodies ...string) {
	r.t.Helper()
	for _, body := range bodies {
		r.send(id, 4, body)
	}
	r.settle()
}

// Bodies on the disk are read in the background; a ReceiveAndDelete consumer gets the
// messages in order, as many as there is space for, each after its removal.
func TestBodiesAreFetchedInOrder(t *testing.T) {
	r := newRig(t, Options{CacheBytes: 1})
	id := r.define("orders", minute)
	var want []string
	for i := range 3*fetchWindow + 7 {
		want = append(want, fmt.Sprint("message ", i))
	}
	r.sendAll(id, want...)
	k := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: true})
	k.c.SetDeliveryLimit(uint64(len(want)))
	r.step()
	if n := len(k.c.fetching); n != fetchWindow {
		t.Fatalf("%d bodies are asked for, want %d", n, fetchWindow)
	}
	for len(k.got) < len(want) {
		if len(r.background) > maxFetches {
			t.Fatalf("%d reads at a time, want at most %d", len(r.background), maxFetches)
		}
		if len(r.background) > 0 { // the last one first
			f := r.background[len(r.background)-1]
			r.background = r.background[:len(r.background)-1]
			f()
		}
		before := len(k.got)
		r.step()
		r.sync()
		r.step()
		if len(k.got) == before && len(r.background) == 0 {
			t.Fatalf("%d of %d messages came, and nothing is under way", len(k.got), len(want))
		}
	}
	if got := k.bodies(); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// A drain that waits for bodies answers behind them, and does not void what is
// allowed meanwhile.
func TestDrainWaitsForBodies(t *testing.T) {
	r := newRig(t, Options{CacheBytes: 1})
	id := r.define("orders", minute)
	r.sendAll(id, "a", "b", "c")
	k := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: true})
	k.c.SetDeliveryLimit(2)
	k.c.Drain()
	r.step()
	k.c.SetDeliveryLimit(3)
	k.c.Drain()
	r.step()
	if k.drained != 0 {
		t.Fatal("drained before the bodies were read")
	}
	r.settle()
	if got, want := k.bodies(), []string{"a", "b", "c"}; !slices.Equal(got, want) || k.drained != 2 {
		t.Fatalf("got %q and %d drains, want %q and 2", got, k.drained, want)
	}
	r.sendAll(id, "d")
	if len(k.got) != 3 {
		t.Fatal("a drained consumer got another message")
	}
}

// A message that is held for its body goes back with its consumer.
func TestDetachReturnsWhatWaitsForItsBody(t *testing.T) {
	r := newRig(t, Options{CacheBytes: 1})
	id := r.define("orders", minute)
	r.sendAll(id, "a", "b")
	k := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: true})
	k.c.SetDeliveryLimit(10)
	r.step()
	k.c.Detach()
	r.step()
	next := r.attach(id, Main, queue.TakeOptions{})
	next.c.SetDeliveryLimit(10)
	r.settle()
	if got, want := next.bodies(), []string{"a", "b"}; !slices.Equal(got, want) || next.got[0].Failures != 0 {
		t.Fatalf("got %q, want %q", got, want)
	}
	if len(k.got) != 0 {
		t.Fatalf("who was detached got %q", k.bodies())
	}
}

// A lock that runs out while its delivery waits for the disk has failed
// nothing, nor has a session that does.
func TestUndeliveredLocksThatRunOutDoNotCount(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", queue.Config{LockFor: time.Second, MaxFailures: 1})
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(10)
	r.send(id, 4, "a")
	r.step() // taken, and not durable
	r.now = r.now.Add(time.Minute)
	r.step()
	r.settle()
	if got, want := k.bodies(), []string{"a"}; !slices.Equal(got, want) || k.got[0].Failures != 0 {
		t.Fatalf("got %q, want %q", got, want)
	}

	sessions := r.define("sessions", queue.Config{LockFor: time.Second, MaxFailures: 1, Sessions: true})
	s, name := &taker{r: r}, "s"
	r.accept(s, Attachment{ID: sessions}, &name, nil)
	r.step()
	s.c.SetDeliveryLimit(10)
	if err := r.s.Send(&Send{
		Bodies: []*message.Message{text("b")},
		Copies: []Copy{{ID: sessions, Arrival: queue.Arrival{Session: "s", InSession: true}}},
		Done:   func([]queue.SeqNo, error) {},
	}); err != nil {
		t.Fatal(err)
	}
	r.step()
	r.now = r.now.Add(time.Minute)
	r.settle()
	if !errors.Is(s.ended, queue.ErrSessionLockLost) {
		t.Fatalf("the consumer ended with %v", s.ended)
	}
	d, ok := r.s.entities[sessions].parts[Main].q.Lookup(1)
	if !ok || d.State != queue.Ready || d.Failures != 0 {
		t.Fatalf("the message of the session is %+v, want it ready and uncounted", d)
	}
}

// inSessionWith returns a consumer that has a session with one message in hand.
func inSessionWith(t *testing.T, r *rig, cfg queue.Config) (ID, *taker) {
	t.Helper()
	cfg.Sessions = true
	id := r.define("sessions", cfg)
	if err := r.s.Send(&Send{
		Bodies: []*message.Message{text("a")},
		Copies: []Copy{{ID: id, Arrival: queue.Arrival{Session: "s", InSession: true}}},
		Done:   func([]queue.SeqNo, error) {},
	}); err != nil {
		t.Fatal(err)
	}
	k, name := &taker{r: r}, "s"
	r.accept(k, Attachment{ID: id}, &name, nil)
	r.settle()
	k.c.SetDeliveryLimit(10)
	r.settle()
	if len(k.got) != 1 {
		t.Fatalf("%d messages came, want 1", len(k.got))
	}
	return id, k
}

// An abandon with properties that waits for its body counts, though the consumer
// has left meanwhile and its session goes back: the detach waits for it.
func TestDetachWaitsForParkedSettlements(t *testing.T) {
	r := newRig(t, Options{CacheBytes: 1})
	id, k := inSessionWith(t, r, minute)
	k.settleWith(Abandon, []message.Change{{Name: "note", Value: codec.Int(1)}})
	k.c.Detach()
	r.step()
	hq, _ := r.s.hostedQueue(id, Main)
	if len(hq.parked) != 1 || !hq.q.SessionLockValid(r.now, k.c.take.Session) {
		t.Fatalf("%d settlements are parked; the session must not go before", len(hq.parked))
	}
	r.settle()
	d, _ := hq.q.Lookup(1)
	if d.State != queue.Ready || d.Failures != 1 || hq.q.SessionLockValid(r.now, k.c.take.Session) {
		t.Fatalf("the message is %+v, want it ready and failed once, and the session free", d)
	}
}

// What a consumer was to be given and did not get goes back when it asks to leave,
// also if its detach has to wait for a settlement; and it hears no more.
func TestDetachThatWaitsGivesNothingMore(t *testing.T) {
	for _, drop := range []bool{false, true} {
		r := newRig(t, Options{CacheBytes: 1})
		id, k := inSessionWith(t, r, minute)
		if err := r.s.Send(&Send{
			Bodies: []*message.Message{text("b")},
			Copies: []Copy{{ID: id, Arrival: queue.Arrival{Session: "s", InSession: true}}},
			Done:   func([]queue.SeqNo, error) {},
		}); err != nil {
			t.Fatal(err)
		}
		r.step() // taken, and not durable
		if k.c.held.Waiting() != 1 {
			t.Fatal("nothing waits for the disk; the test shows nothing")
		}
		k.settleWith(Abandon, []message.Change{{Name: "note", Value: codec.Int(1)}})
		k.c.Detach()
		r.step()
		hq, _ := r.s.hostedQueue(id, Main)
		if len(hq.parked) != 1 {
			t.Fatal("nothing is parked; the test shows nothing")
		}
		if drop {
			if err := r.s.Drop([]ID{id}, func(error) {}); err != nil {
				t.Fatal(err)
			}
			r.step()
		}
		for range 2 {
			if err := r.wal.Commit(); err != nil {
				t.Fatal(err)
			}
			r.step()
		}
		r.settle()
		if len(k.got) != 1 || k.ended != nil {
			t.Errorf("drop %v: who has asked to leave got %d messages more, and was told %v", drop, len(k.got)-1, k.ended)
		}
		if d, ok := hq.q.Lookup(2); !drop && (!ok || d.State != queue.Ready || d.Failures != 0) {
			t.Errorf("the message is %+v, want it ready and not failed", d)
		}
	}
}

// A dead letter that cannot be read, received, deleted and returned, is as damaged as
// before: what stood in for it must not be taken for it.
func TestReturnedStandInIsStillDamaged(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	g := r.guard()
	if err := r.s.Send(&Send{
		Bodies: []*message.Message{text("dead")},
		Copies: []Copy{{ID: id, SubQueue: DeadLetter}},
		Done:   func([]queue.SeqNo, error) {},
	}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	hq, _ := r.s.hostedQueue(id, DeadLetter)
	d, _ := hq.q.Lookup(1)
	g.damaged[journal.Position(d.Body.At)] = true
	k := r.attach(id, DeadLetter, queue.TakeOptions{ReceiveAndDelete: true})
	k.c.SetDeliveryLimit(1)
	r.step()
	r.work()
	r.step() // removed, and not durable
	k.c.Detach()
	r.settle()
	next := r.attach(id, DeadLetter, queue.TakeOptions{})
	next.c.SetDeliveryLimit(1)
	r.settle()
	if len(k.got) != 0 || len(next.got) != 1 {
		t.Fatalf("%d and %d deliveries, want none and one", len(k.got), len(next.got))
	}
	if _, err := r.load(&next.got[0]); err != nil || !next.got[0].Damaged() {
		t.Errorf("loaded with %v; damaged: %v", err, next.got[0].Damaged())
	}
}

// A settlement with properties of very many messages reads them in portions.
func TestParkedSettlementsReadInPortions(t *testing.T) {
	r := newRig(t, Options{CacheBytes: 1})
	id := r.define("orders", minute)
	const n = 2*engine.FetchCount + 5
	for i := range n {
		r.send(id, 4, fmt.Sprint(i))
	}
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(n)
	r.settle()
	var errs []error
	answered := false
	x := &Settle{ID: id, Disposition: Defer, Properties: []message.Change{{Name: "note", Value: codec.Int(7)}},
		Done: func(es []error) { errs, answered = es, true }}
	for _, d := range k.got {
		x.Tokens = append(x.Tokens, d.Token)
	}
	x.Tokens = append(x.Tokens, queue.Token{Seq: 1, Nonce: 42}) // holds nothing
	if err := r.s.Settle(x); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if !answered || len(errs) != n+1 || !errors.Is(errs[n], queue.ErrLockLost) || slices.ContainsFunc(errs[:n], func(e error) bool { return e != nil }) {
		t.Fatalf("answered %t with %v", answered, errs)
	}
	hq, _ := r.s.hostedQueue(id, Main)
	for seq := queue.SeqNo(1); seq <= n; seq++ {
		d, _ := hq.q.Lookup(seq)
		if d.State != queue.Deferred {
			t.Fatalf("message %d is %v, want deferred", seq, d.State)
		}
		m, err := r.s.Read(context.Background(), d.Body)
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := m.Property("note"); v.IsNull() {
			t.Fatalf("message %d lacks the property", seq)
		}
	}
}

// A settlement that waits when its queue is dropped, or the shard stops, is answered.
func TestParkedSettlementsAreAnswered(t *testing.T) {
	r := newRig(t, Options{CacheBytes: 1})
	id := r.define("orders", minute)
	r.sendAll(id, "a")
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	r.settle()
	var errs []error
	if err := r.s.Settle(&Settle{ID: id, Tokens: []queue.Token{k.got[0].Token}, Disposition: Abandon,
		Properties: []message.Change{{Name: "note", Value: codec.Int(1)}}, Done: func(es []error) { errs = es }}); err != nil {
		t.Fatal(err)
	}
	r.step()
	if err := r.s.Drop([]ID{id}, func(error) {}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if len(errs) != 1 || !errors.Is(errs[0], ErrNoEntity) {
		t.Fatalf("answered with %v, want %v", errs, ErrNoEntity)
	}
}

// On a full disk a settlement with properties is refused and leaves the lock
// as it was; a dead letter needs neither its body nor space for another one.
func TestFullDiskRefusesNewBodiesAndKeepsDeadLetters(t *testing.T) {
	r := newRig(t, Options{CacheBytes: 1})
	id := r.define("orders", minute)
	r.sendAll(id, strings.Repeat("a", 5000), strings.Repeat("b", 5000))
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(2)
	r.settle()
	r.s.manual().Report(journal.Status{Durable: r.s.tx.Durable(), Full: true})
	var errs []error
	if err := r.s.Settle(&Settle{ID: id, Tokens: []queue.Token{k.got[0].Token}, Disposition: Reject,
		Properties: []message.Change{{Name: "note", Value: codec.Int(1)}}, Done: func(es []error) { errs = es }}); err != nil {
		t.Fatal(err)
	}
	r.step()
	r.sync()
	r.step()
	if len(errs) != 1 || !errors.Is(errs[0], ErrNoPropertySpace) {
		t.Fatalf("answered with %v, want %v", errs, ErrNoPropertySpace)
	}
	hq, _ := r.s.hostedQueue(id, Main)
	if !hq.q.LockValid(r.now, k.got[0].Token) {
		t.Fatal("a settlement that was refused has ended the lock")
	}
	r.s.manual().Report(journal.Status{Durable: r.s.tx.Durable(), Full: true})
	r.step()
	before := r.s.view().Kept
	k.settle(Reject, k.got...)
	if wrote := r.s.view().Kept - before; wrote > 1000 {
		t.Fatalf("two dead letters of 5,000 bytes wrote %d bytes", wrote)
	}
	r.settle()
	dead := r.attach(id, DeadLetter, queue.TakeOptions{})
	dead.c.SetDeliveryLimit(2)
	r.settle()
	if got := dead.bodies(); len(got) != 2 || got[0] != strings.Repeat("a", 5000) {
		t.Fatalf("%d dead letters", len(got))
	}
	m, err := dead.got[1].Message()
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := m.Property(message.PropertyDeadLetterReason); v.String() != "because" {
		t.Errorf("reason %v", v)
	}
}

// A dead letter has its reason also when it is received and deleted, when properties are
// merged into it, when its reason was moved, and after a restart; a reason that is
// too long is cut.
func TestReasonsBesideTheBody(t *testing.T) {
	r := newRig(t, Options{CacheBytes: 1, SnapshotAfter: 4 << 10, SnapshotStep: 3})
	id := r.define("orders", minute)
	long := strings.Repeat("é", bodies.MaxReason+10)
	for i := range 30 {
		r.send(id, 4, fmt.Sprint(i))
	}
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(30)
	r.settle()
	for _, d := range k.got {
		if err := r.s.Settle(&Settle{ID: id, Tokens: []queue.Token{d.Token}, Disposition: Reject,
			Reason: fmt.Sprint("reason ", d.Seq), Description: long, Done: func([]error) {}}); err != nil {
			t.Fatal(err)
		}
		r.settle() // snapshots move bodies and reasons meanwhile
	}
	reason := func(d *Delivery) string {
		t.Helper()
		m, err := r.load(d)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := m.Property(message.PropertyDeadLetterDescription)
		if s, _ := text.Str(); len([]rune(s)) != bodies.MaxReason {
			t.Errorf("a description of %d characters, want %d", len([]rune(s)), bodies.MaxReason)
		}
		v, _ := m.Property(message.PropertyDeadLetterReason)
		s, _ := v.Str()
		return s
	}
	if r.s.Snapshots() < 3 {
		t.Fatalf("%d snapshots; the test shows little", r.s.Snapshots())
	}
	r.crash(1)
	dead := r.attach(id, DeadLetter, queue.TakeOptions{})
	dead.c.SetDeliveryLimit(1)
	r.settle()
	if got := reason(&dead.got[0]); got != "reason 1" {
		t.Errorf("after a restart: %q", got)
	}
	dead.settleWith(Abandon, []message.Change{{Name: "note", Value: codec.Int(1)}})
	r.settle()
	dead.c.Detach()
	r.settle()
	good := r.attach(id, DeadLetter, queue.TakeOptions{ReceiveAndDelete: true})
	good.c.SetDeliveryLimit(30)
	r.settle()
	if len(good.got) != 30 {
		t.Fatalf("%d dead letters, want 30", len(good.got))
	}
	for i := range good.got {
		if got, want := reason(&good.got[i]), fmt.Sprint("reason ", i+1); got != want {
			t.Errorf("dead letter %d: %q, want %q", i, got, want)
		}
	}
	m, _ := good.got[0].Message()
	if v, _ := m.Property("note"); v.IsNull() {
		t.Error("the property that was merged into a dead letter is lost")
	}
	if err := r.s.Check(); err != nil {
		t.Error(err)
	}
}

// What was received and deleted returns although its block was freed.
func TestReturnAfterItsBlockIsGone(t *testing.T) {
	r := newRig(t, Options{SnapshotAfter: 4 << 10})
	id := r.define("orders", minute)
	r.sendAll(id, "a")
	k := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: true})
	k.c.SetDeliveryLimit(1)
	r.settle()
	k.c.Detach()
	old := k.got[0].Body
	other := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: true})
	for i := 0; r.s.tx.Retained(old); i++ {
		if i == 500 {
			t.Fatal("the block is still there")
		}
		other.c.SetDeliveryLimit(uint64(i + 1))
		r.sendAll(id, strings.Repeat("x", 2000))
	}
	other.c.Detach()
	if err := Return(k.got); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if err := Return(k.got); err != nil { // once is enough
		t.Fatal(err)
	}
	r.settle()
	r.crash(1)
	if err := r.s.Check(); err != nil {
		t.Fatal(err)
	}
	next := r.attach(id, Main, queue.TakeOptions{})
	next.c.SetDeliveryLimit(10)
	r.settle()
	if got, want := next.bodies(), []string{"a"}; !slices.Equal(got, want) || next.got[0].Seq != 1 {
		t.Fatalf("got %q, want %q under its old number", got, want)
	}
}

// Nobody may get a message that returned before that is durable: after a
// crash it would be theirs alone.
func TestReturnedMessageWaitsUntilThatIsDurable(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	r.sendAll(id, "a")
	k := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: true})
	k.c.SetDeliveryLimit(1)
	r.settle()
	next := r.attach(id, Main, queue.TakeOptions{})
	next.c.SetDeliveryLimit(1)
	if err := Return(k.got); err != nil {
		t.Fatal(err)
	}
	r.step()
	r.step()
	if len(next.got) != 0 {
		t.Fatal("delivered before its return was durable")
	}
	r.settle()
	if len(next.got) != 1 {
		t.Fatal("not delivered after that")
	}
}

// What can never be taken counts as failed, and ends among the dead letters.
func TestReturnFailedCounts(t *testing.T) {
	r := newRig(t, Options{})
	cfg := minute
	cfg.MaxFailures = 2
	id := r.define("orders", cfg)
	r.sendAll(id, "a")
	k := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: true})
	for i := range 2 {
		k.c.SetDeliveryLimit(uint64(i + 1))
		r.settle()
		if err := ReturnFailed(k.got[i:]); err != nil {
			t.Fatal(err)
		}
		r.settle()
	}
	dead := r.attach(id, DeadLetter, queue.TakeOptions{})
	dead.c.SetDeliveryLimit(1)
	r.settle()
	if got, want := dead.bodies(), []string{"a"}; !slices.Equal(got, want) || k.got[1].Failures != 1 {
		t.Fatalf("dead letters %q, want %q after a second try", got, want)
	}
}

// A shard that stops gives back what it has removed for a consumer and not
// handed over.
func TestStopReturnsWhatWasNotDelivered(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	r.sendAll(id, "a", "b")
	k := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: true})
	k.c.SetDeliveryLimit(2)
	r.step() // removed, and not durable
	log, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	end := &ender{taker: &taker{r: r}, then: func() {
		go func() { done <- r.wal.Run(log) }() // ends with stop, and is waited for
	}}
	if err := r.s.Attach(Attachment{Consumer: r.s.AddSink(end), ID: id, SubQueue: TransferDeadLetter}, func(error) {}); err != nil {
		t.Fatal(err)
	}
	if err := r.s.manual().Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.s.manual().Stop(ErrStopped)
	stop()
	<-done
	if !errors.Is(k.ended, ErrStopped) || len(k.got) != 0 {
		t.Fatalf("ended with %v after %d messages", k.ended, len(k.got))
	}
	r.crash(0)
	next := r.attach(id, Main, queue.TakeOptions{})
	next.c.SetDeliveryLimit(2)
	r.settle()
	if got, want := next.bodies(), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Fatalf("after the stop: %q, want %q", got, want)
	}
}

// ender does something when it is told that it is over.
type ender struct {
	*taker
	then func()
}

func (e *ender) Ended(err error) {
	e.taker.Ended(err)
	e.then()
}

// The body may be cached, and the saved state never is: it has to be read before the message
// is removed, as a body is that is only on the disk.
func TestSavedStateIsReadBeforeItsMessageIsRemoved(t *testing.T) {
	r := newRig(t, Options{CacheBytes: 1 << 20})
	id := r.define("orders", minute)
	r.sendAll(id, "a")
	first := r.attach(id, Main, queue.TakeOptions{})
	first.c.SetDeliveryLimit(1)
	r.settle()
	save := Save{Queue: QueueID{Entity: id}, Token: first.got[0].Token, State: []byte("half")}
	if err := Post(r.s, save, func(_ time.Time, err error) {
		if err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	first.settle(Release, first.got[0])
	r.settle()
	k := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: true})
	k.c.SetDeliveryLimit(1)
	r.settle()
	if len(k.got) != 1 || !k.got[0].Loaded() {
		t.Fatalf("%d messages came, want one that is loaded: what is removed may be freed", len(k.got))
	}
	m, err := k.got[0].Message()
	if err != nil {
		t.Fatal(err)
	}
	state, _ := m.Property(message.PropertyState)
	if b, _ := state.Bytes(); string(b) != "half" {
		t.Errorf("it came with state %q, want half", b)
	}
}
