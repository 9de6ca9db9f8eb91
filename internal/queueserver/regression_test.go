// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// What the simulator found, each as small as it could be made.

func TestRecordsBeforeTheirQueueInASnapshot(t *testing.T) {
	r := newRig(t, Options{SnapshotAfter: 2 << 10, SnapshotStep: 1})
	cfg := minute
	cfg.MaxFailures = 1
	id := r.define("orders", cfg)
	k := r.attach(id, Main, queue.TakeOptions{MinLevel: 5})
	k.c.SetDeliveryLimit(1000)
	dead := r.attach(id, DeadLetter, queue.TakeOptions{ReceiveAndDelete: true})
	dead.c.SetDeliveryLimit(1000)
	for i := range 5 {
		r.send(id, 4, fmt.Sprint(i))
	}
	// A dead letter in every step, wherever the snapshot is.
	for i := range 100 {
		r.send(id, 9, fmt.Sprintf("%0100d", i))
		r.step()
		r.sync()
		r.step()
		k.settle(Abandon, k.got[i])
		r.step()
		r.sync()
		image, s := r.disk.CrashClone(0), r.s
		again := &rig{t: t, disk: image, opts: r.opts, now: r.now}
		again.open() // a history that cannot be replayed fails here
		got, want := again.s.entities[id].parts[DeadLetter].q, s.entities[id].parts[DeadLetter].q
		if got.StateHash(r.now) != want.StateHash(r.now) {
			t.Fatalf("after dead letter %d: recovered %+v, had %+v", i, got.Counts(), want.Counts())
		}
	}
	if r.s.Snapshots() < 2 {
		t.Fatalf("%d snapshots; the test shows nothing", r.s.Snapshots())
	}
}

func TestPartWithoutSettingsSurvivesAnUnfinishedSnapshot(t *testing.T) {
	r := newRig(t, Options{SnapshotAfter: 1 << 10, SnapshotStep: 1})
	if err := r.s.Define(Definition{Name: "orders"}, map[SubQueue]queue.Config{Main: minute}, func(ID, error) {}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	for i := range 40 {
		r.send(1, 4, fmt.Sprintf("%0100d", i))
		r.step()
		if err := r.wal.Commit(); err != nil {
			t.Fatal(err)
		}
		again := &rig{t: t, disk: r.disk.CrashClone(0), opts: r.opts, now: r.now}
		again.open() // a history that cannot be replayed fails here
	}
}

func TestNextSessionSaysUntilWhen(t *testing.T) {
	r := newRig(t, Options{})
	cfg := minute
	cfg.Sessions = true
	id := r.define("orders", cfg)
	var until time.Time
	r.accept(&taker{r: r}, Attachment{ID: id}, nil, func(_ queue.SessionLock, at time.Time, err error) {
		if err != nil {
			t.Errorf("accept a session: %v", err)
		}
		until = at
	})
	if err := r.s.Send(&Send{
		Bodies: []*message.Message{text("a")},
		Copies: []Copy{{ID: id, Arrival: queue.Arrival{Session: "s", InSession: true}}},
		Done:   func([]queue.SeqNo, error) {},
	}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if want := r.now.Add(time.Minute); !until.Equal(want) {
		t.Fatalf("the session is held until %v, want %v", until, want)
	}
}

func TestSessionWaiterForALevelDoesNotBlockOthers(t *testing.T) {
	r := newRig(t, Options{})
	cfg := minute
	cfg.Sessions = true
	id := r.define("orders", cfg)
	got := make(map[string]string)
	seek := func(who string, w queue.TakeOptions) {
		r.accept(&taker{r: r}, Attachment{ID: id, Take: w}, nil, func(l queue.SessionLock, _ time.Time, err error) {
			if err != nil {
				t.Errorf("accept a session: %v", err)
			}
			got[who] = l.ID
		})
	}
	send := func(session string, level queue.Level) {
		if err := r.s.Send(&Send{
			Bodies: []*message.Message{text(session)},
			Copies: []Copy{{ID: id, Arrival: queue.Arrival{Level: level, Session: session, InSession: true}}},
			Done:   func([]queue.SeqNo, error) {},
		}); err != nil {
			t.Fatal(err)
		}
	}
	seek("urgent", queue.TakeOptions{MinLevel: 8})
	seek("any", queue.TakeOptions{})
	send("a", 2)
	r.settle()
	send("b", 2)
	r.settle()
	if want := map[string]string{"any": "a"}; !maps.Equal(got, want) {
		t.Fatalf("low sessions only: got %v, want %v", got, want)
	}
	send("b", 9) // what is behind 2 lifts it
	r.settle()
	if want := map[string]string{"any": "a", "urgent": "b"}; !maps.Equal(got, want) {
		t.Fatalf("after a high message: got %v, want %v", got, want)
	}
}

// A shard in which nothing ever happened once began its history with a snapshot,
// because others wrote much; a crash then left a snapshot without an end.
func TestShardWithoutHistoryTakesNoSnapshot(t *testing.T) {
	r := newRig(t, Options{SnapshotAfter: 1 << 10, SnapshotStep: 1})
	idle, err := Open(context.Background(), r.wal, 1, r.opts)
	if err != nil {
		t.Fatal(err)
	}
	id := r.define("orders", minute)
	for i := range 20 {
		r.send(id, 4, fmt.Sprintf("%0100d", i))
		r.settle()
		idle.Step(r.now)
		r.sync()
		w, err := wal.Open(r.disk.CrashClone(0), wal.Options{SegmentSize: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(context.Background(), w, 1, r.opts); err != nil {
			t.Fatalf("after %d messages elsewhere: %v", i+1, err)
		}
	}
}

func TestConsumerIsToldNothingAfterItsEnd(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	k := r.attach(id, Main, queue.TakeOptions{})
	r.send(id, 4, "a")
	k.c.SetDeliveryLimit(1)
	r.step() // the message is delivered when it is durable, and the drain waits behind it
	k.c.Drain()
	r.step()
	if err := r.s.Drop([]ID{id}, func(error) {}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if k.ended == nil || k.drained > 0 || len(k.got) > 0 {
		t.Errorf("ended %v, drained %d times, %d messages, want only the end", k.ended, k.drained, len(k.got))
	}
}

func TestRefusedSettlementChangesNothing(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	r.send(id, 4, "a")
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	r.settle()
	k.settle(Reject, k.got[0])
	dead := r.attach(id, DeadLetter, queue.TakeOptions{})
	dead.c.SetDeliveryLimit(1)
	r.settle()
	before, _ := r.s.entities[id].parts[DeadLetter].q.Lookup(1)
	var got []error
	if err := r.s.Settle(&Settle{ID: id, SubQueue: DeadLetter, Tokens: []queue.Token{dead.got[0].Token}, Disposition: Reject,
		Properties: []message.Change{{Name: "x", Value: codec.Int(1)}},
		Done:       func(errs []error) { got = errs },
	}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if len(got) != 1 || !errors.Is(got[0], queue.ErrNotAllowed) {
		t.Fatalf("reject a dead letter: %v, want %v", got, queue.ErrNotAllowed)
	}
	if after, _ := r.s.entities[id].parts[DeadLetter].q.Lookup(1); after.Body != before.Body {
		t.Fatalf("the refused settlement gave the message another body")
	}
}

func TestAllowanceAfterADrainIsNotVoid(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(5)
	k.c.Drain()
	k.c.SetDeliveryLimit(3) // in the same turn as the drain
	r.settle()
	if k.drained != 1 {
		t.Fatalf("told %d times that it is drained, want 1", k.drained)
	}
	r.send(id, 4, "a")
	r.settle()
	if len(k.got) != 1 {
		t.Fatalf("got %d messages, want the one that was sent", len(k.got))
	}
}

func TestExpiredMessagesAreRecordedForTheirOwnQueue(t *testing.T) {
	r := newRig(t, Options{})
	cfg := minute
	cfg.LockFor, cfg.TTL = 3*time.Hour, time.Hour
	id, other := r.define("orders", cfg), r.define("other", minute)
	r.send(id, 4, "a")
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(2)
	r.settle()
	r.now = r.now.Add(2 * time.Hour)
	r.step()
	k.settle(Release, k.got[0]) // too late to be delivered again
	r.step()
	r.send(other, 4, "b")
	r.settle()
	r.crash(0)
	for _, c := range []struct {
		id   ID
		want int64
	}{{id, 0}, {other, 1}} {
		if got := r.s.entities[c.id].parts[Main].q.Counts().Total(); got != c.want {
			t.Errorf("entity %d has %d messages after a crash, want %d", c.id, got, c.want)
		}
	}
}

// A journal that refuses a body permanently ends the shard. Nothing of the step in which
// that happened may reach the disk: it may be half of something.
func TestStepThatBreaksOffWritesNothing(t *testing.T) {
	r := newRig(t, Options{})
	id, other := r.define("orders", minute), r.define("others", minute)
	before := r.s.view().Tail
	broken := errors.New("broken")
	r.s.manual().SetJournal(bodiless{r.s.manual().Journal(), broken})
	var redefined, sent error
	if err := r.s.Redefine(other, []byte("changed"), nil, func(err error) { redefined = err }); err != nil {
		t.Fatal(err)
	}
	if err := r.s.Send(&Send{Bodies: []*message.Message{text("a")}, Copies: []Copy{{ID: id}},
		Done: func(_ []queue.SeqNo, err error) { sent = err }}); err != nil {
		t.Fatal(err)
	}
	r.s.Step(r.now)
	if !errors.Is(r.s.Failed(), broken) || !errors.Is(sent, broken) {
		t.Fatalf("failed with %v, answered %v, want %v", r.s.Failed(), sent, broken)
	}
	if redefined == nil || r.s.view().Tail != before {
		t.Fatalf("the change beside it was answered with %v, and %d bytes written", redefined, r.s.view().Tail-before)
	}
	r.sync()
	r.crash(0) // what cannot be replayed fails here
}

// bodiless is a journal that takes no bodies.
type bodiless struct {
	journal.Journal
	err error
}

func (b bodiless) Append(c journal.Claim, g *journal.Group) error {
	if g.Records[0][0] == kindBody {
		return b.err
	}
	return b.Journal.Append(c, g)
}

// keeper lets everything in and evicts for it what it was told to.
type keeper struct {
	watcher
	refuse   error
	evict    []queue.SeqNo
	asked    int // arrivals
	declined int
}

func (k *keeper) Admit(_ time.Time, _ *queue.Queue, as []queue.Arrival) ([]queue.SeqNo, error) {
	k.asked += len(as)
	return k.evict, k.refuse
}
func (k *keeper) AdmitCanceled(_ time.Time, as []queue.Arrival) { k.declined += len(as) }

// observe sets the observer of a queue.
func (r *rig) observe(id ID, o Observer) {
	r.t.Helper()
	if err := r.s.Observe(id, Main, o); err != nil {
		r.t.Fatal(err)
	}
}

// trySend sends one message to several queues and returns the answer.
func (r *rig) trySend(m *message.Message, a queue.Arrival, ids ...ID) (err error) {
	r.t.Helper()
	x := &Send{Bodies: []*message.Message{m}, Done: func(_ []queue.SeqNo, e error) { err = e }}
	for _, id := range ids {
		x.Copies = append(x.Copies, Copy{ID: id, Arrival: a})
	}
	if err := r.s.Send(x); err != nil {
		r.t.Fatal(err)
	}
	r.settle()
	return err
}

// A message that no block can hold is refused after everybody has let it in. What
// would be evicted for it must stay.
func TestRefusedMessageEvictsNothing(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	r.send(id, 4, "a")
	r.settle()
	k := &keeper{evict: []queue.SeqNo{1}}
	r.observe(id, k)
	if err := r.trySend(text(strings.Repeat("x", 1<<17)), queue.Arrival{}, id); !errors.Is(err, journal.ErrTooLarge) {
		t.Fatalf("got %v, want %v", err, journal.ErrTooLarge)
	}
	if got := r.s.entities[id].parts[Main].q.Counts().Ready; got != 1 {
		t.Errorf("%d messages, want the one that was there", got)
	}
	if k.declined != 1 {
		t.Errorf("the observer was told of %d messages that are not stored, want 1", k.declined)
	}
}

// Of a message that goes to two queues, of which one refuses, the other is told.
func TestObserverIsToldOfWhatAnotherRefuses(t *testing.T) {
	r := newRig(t, Options{})
	first, second := r.define("first", minute), r.define("second", minute)
	refusal := errors.New("no")
	k := new(keeper)
	r.observe(first, k)
	r.observe(second, &keeper{refuse: refusal})
	if err := r.trySend(text("a"), queue.Arrival{}, first, second); !errors.Is(err, refusal) {
		t.Fatalf("got %v, want %v", err, refusal)
	}
	if k.asked != 1 || k.declined != 1 {
		t.Errorf("asked about %d and told of %d that are not stored, want 1 and 1", k.asked, k.declined)
	}
	if err := r.trySend(text("b"), queue.Arrival{}, first); err != nil || k.declined != 1 || k.told != 1 {
		t.Errorf("alone: %v, %d declined, %d arrived; want none and 1", err, k.declined, k.told)
	}
}

func TestObserverIsNotAskedAboutDuplicates(t *testing.T) {
	r := newRig(t, Options{})
	cfg := minute
	cfg.DuplicateWindow = time.Hour
	id := r.define("orders", cfg)
	k := new(keeper)
	r.observe(id, k)
	for range 3 {
		if err := r.trySend(text("a"), queue.Arrival{MessageID: "1"}, id); err != nil {
			t.Fatal(err)
		}
	}
	if k.asked != 1 || k.told != 1 {
		t.Errorf("asked about %d and told of %d, want the first alone", k.asked, k.told)
	}
}

// A consumer that waits for a session uses the queue, as any receiver.
func TestWaitForASessionIsUse(t *testing.T) {
	r := newRig(t, Options{})
	cfg := minute
	cfg.Sessions = true
	id := r.define("orders", cfg)
	gaveUp := false
	consumer := r.s.AddSink(&taker{r: r})
	err := r.s.AcceptSession(Attachment{Consumer: consumer, ID: id}, nil, func(_ queue.SessionLock, _ time.Time, err error) {
		gaveUp = errors.Is(err, ErrAcceptCanceled)
	})
	if err != nil {
		t.Fatal(err)
	}
	r.settle()
	drop := func() (answer error) {
		t.Helper()
		err := Post(r.s, DropIdle{Entities: []IdleEntity{{ID: id}}, Limit: time.Hour}, func(_ time.Time, err error) { answer = err })
		if err != nil {
			t.Fatal(err)
		}
		r.settle()
		return answer
	}
	r.now = r.now.Add(2 * time.Hour)
	if err := drop(); !errors.Is(err, ErrInUse) {
		t.Errorf("while a receiver waits: %v, want %v", err, ErrInUse)
	}
	if err := r.s.CancelAccept(consumer); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if !gaveUp {
		t.Fatal("the receiver does not give up")
	}
	r.now = r.now.Add(30 * time.Minute)
	if err := drop(); !errors.Is(err, ErrInUse) {
		t.Errorf("half an hour after it gave up: %v, want %v", err, ErrInUse)
	}
	r.now = r.now.Add(time.Hour)
	if err := drop(); err != nil {
		t.Errorf("an hour after it gave up: %v, want it dropped", err)
	}
}
