// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/vfs"
)

// rig drives one shard by hand: nothing happens between its calls.
type rig struct {
	t    testing.TB
	disk *vfs.Mem
	opts Options
	wal  *wal.WAL
	s    *Shard
	now  time.Time

	stepping   atomic.Bool // the shard is at work
	background []func()    // what it wants done beside it
}

func newRig(t testing.TB, opts Options) *rig {
	t.Helper()
	r := &rig{t: t, disk: vfs.NewMem(), opts: opts, now: time.Unix(1_700_000_000, 0)}
	r.opts.Go = func(_ journal.Shard, f func()) { r.background = append(r.background, f) }
	r.open()
	return r
}

// work does what the shard wants done in the background.
func (r *rig) work() {
	for len(r.background) > 0 {
		f := r.background[0]
		r.background = r.background[1:]
		f()
	}
}

func (r *rig) open() {
	r.t.Helper()
	w, err := wal.Open(r.disk, wal.Options{SegmentSize: 1 << 16})
	if err != nil {
		r.t.Fatalf("open the journal: %v", err)
	}
	s, err := Open(context.Background(), w, 0, r.opts)
	if err != nil {
		r.t.Fatalf("open the shard: %v", err)
	}
	r.wal, r.s = w, s
}

// crash loses what was not durable and comes back.
func (r *rig) crash(seed uint64) {
	r.t.Helper()
	r.disk = r.disk.CrashClone(seed)
	r.open()
}

// step lets the shard work once; what it wrote is not durable yet.
func (r *rig) step() {
	r.t.Helper()
	r.stepping.Store(true)
	r.s.Step(r.now)
	r.stepping.Store(false)
	if r.s.Failed() != nil {
		r.t.Fatalf("shard failed: %v", r.s.Failed())
	}
}

// sync makes durable what was appended. The end of a segment is a batch of its
// own, so one commit is not always enough.
func (r *rig) sync() {
	r.t.Helper()
	for range 3 {
		if err := r.wal.Commit(); err != nil {
			r.t.Fatalf("commit: %v", err)
		}
	}
	r.work()
}

// settle works until everything is durable and every answer out.
func (r *rig) settle() {
	r.t.Helper()
	for range 3 {
		r.step()
		for len(r.background) > 0 {
			r.work()
			r.step()
		}
		if err := r.wal.Commit(); err != nil {
			r.t.Fatalf("commit: %v", err)
		}
		for r.s.view().Snapshotting {
			r.step()
			r.work()
			if err := r.wal.Commit(); err != nil {
				r.t.Fatalf("commit: %v", err)
			}
		}
	}
	r.step()
}

func (r *rig) define(name string, cfg queue.Config) ID {
	r.t.Helper()
	var id ID
	dead := queue.Config{LockFor: cfg.LockFor, DeadLetterQueue: true}
	err := r.s.Define(Definition{Name: name, Meta: []byte("meta of " + name), Sessions: cfg.Sessions},
		map[SubQueue]queue.Config{Main: cfg, DeadLetter: dead, TransferDeadLetter: dead},
		func(got ID, err error) {
			if err != nil {
				r.t.Errorf("define %s: %v", name, err)
			}
			id = got
		})
	if err != nil {
		r.t.Fatalf("define %s: %v", name, err)
	}
	r.settle()
	if id == 0 {
		r.t.Fatalf("define %s: no answer after a sync", name)
	}
	return id
}

func text(body string) *message.Message {
	d := message.Draft{Body: []byte(body)}
	return d.Message()
}

// send posts a message and returns a flag that says whether it was acknowledged.
func (r *rig) send(id ID, level queue.Level, body string) *bool {
	r.t.Helper()
	acked := new(bool)
	err := r.s.Send(&Send{
		Bodies: []*message.Message{text(body)},
		Copies: []Copy{{ID: id, Arrival: queue.Arrival{Level: level}}},
		Done: func(_ []queue.SeqNo, err error) {
			if err != nil {
				r.t.Errorf("send %q: %v", body, err)
			}
			*acked = true
		},
	})
	if err != nil {
		r.t.Fatalf("send %q: %v", body, err)
	}
	return acked
}

// taker is a sink that remembers.
type taker struct {
	r       *rig
	c       *Consumer
	got     []Delivery
	drained int
	ended   error
}

func (k *taker) Deliver(ds []Delivery) { k.got = append(k.got, ds...) }
func (k *taker) Drained()              { k.drained++ }
func (k *taker) Ended(err error)       { k.ended = err }

// load reads a delivery while the shard goes on: a body that was moved is asked
// of it.
func (r *rig) load(d *Delivery) (m *message.Message, err error) {
	done := make(chan struct{})
	go func() { // ends with the read, which this function waits for
		m, err = d.Message()
		close(done)
	}()
	for {
		select {
		case <-done:
			return m, err
		case <-r.s.manual().Wake():
			r.step()
		}
	}
}

func (k *taker) bodies() []string {
	k.r.t.Helper()
	var bs []string
	for i := range k.got {
		m, err := k.r.load(&k.got[i])
		if err != nil {
			k.r.t.Fatalf("load delivery %d: %v", i, err)
		}
		for data := range m.Data() {
			bs = append(bs, string(data))
		}
	}
	return bs
}

func (r *rig) attach(id ID, part SubQueue, w queue.TakeOptions) *taker {
	r.t.Helper()
	k := &taker{r: r}
	err := r.s.Attach(Attachment{ID: id, SubQueue: part, Sink: k, Take: w}, func(c *Consumer, err error) {
		if err != nil {
			r.t.Errorf("attach: %v", err)
		}
		k.c = c
	})
	if err != nil {
		r.t.Fatalf("attach: %v", err)
	}
	r.step()
	return k
}

func (k *taker) settle(v Disposition, ds ...Delivery) (errs []error, answered *bool) {
	k.r.t.Helper()
	answered = new(bool)
	var tokens []queue.Token
	for _, d := range ds {
		tokens = append(tokens, d.Token)
	}
	if err := k.r.s.Settle(&Settle{ID: k.c.queue.entity.ID, SubQueue: k.c.queue.part, Tokens: tokens, Disposition: v,
		Reason: "because", Description: "at length",
		Done: func(es []error) { errs, *answered = es, true }}); err != nil {
		k.r.t.Fatalf("settle: %v", err)
	}
	k.r.step()
	return errs, answered
}

var minute = queue.Config{LockFor: time.Minute}

func TestSendIsAcknowledgedOnlyWhenDurable(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	acked := r.send(id, 4, "a")
	r.step()
	r.step()
	if *acked {
		t.Fatal("acknowledged before the sync")
	}
	if err := r.wal.Commit(); err != nil {
		t.Fatal(err)
	}
	r.step()
	if !*acked {
		t.Fatal("not acknowledged after the sync")
	}
}

func TestMessageIsDeliveredOnlyWhenDurable(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(10)
	r.send(id, 4, "a")
	r.step()
	r.step()
	if len(k.got) != 0 {
		t.Fatal("delivered before the sync")
	}
	if err := r.wal.Commit(); err != nil {
		t.Fatal(err)
	}
	r.step()
	if got, want := k.bodies(), []string{"a"}; !slices.Equal(got, want) {
		t.Fatalf("after the sync: got %q, want %q", got, want)
	}
}

func TestOldMessageDoesNotWaitForTheSyncInProgress(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	r.send(id, 9, "old")
	r.settle()
	r.send(id, 1, "new") // appended, not durable
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(2)
	r.step()
	if got, want := k.bodies(), []string{"old"}; !slices.Equal(got, want) {
		t.Fatalf("before the sync: got %q, want %q", got, want)
	}
	r.settle()
	if got, want := k.bodies(), []string{"old", "new"}; !slices.Equal(got, want) {
		t.Fatalf("after the sync: got %q, want %q", got, want)
	}
}

func TestDispositionIsAnsweredOnlyWhenDurable(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	r.send(id, 4, "a")
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	r.settle()
	_, answered := k.settle(Complete, k.got[0])
	if *answered {
		t.Fatal("answered before the sync")
	}
	r.settle()
	if !*answered {
		t.Fatal("not answered after the sync")
	}
	r.crash(1)
	k = r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	r.settle()
	if len(k.got) != 0 {
		t.Fatalf("completed message came back: %q", k.bodies())
	}
}

func TestHigherLevelFirstAcrossARestart(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	for i, level := range []queue.Level{2, 7, 2, 7, 9} {
		r.send(id, level, fmt.Sprint(level, "-", i))
	}
	r.settle()
	r.crash(3)
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(100)
	r.settle()
	want := []string{"9-4", "7-1", "7-3", "2-0", "2-2"}
	if got := k.bodies(); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestCrashDropsLocksAndTheirTokens(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	r.send(id, 4, "a")
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	r.settle()
	before := k.got[0]
	r.crash(5)
	k = r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	r.settle()
	if got, want := k.bodies(), []string{"a"}; !slices.Equal(got, want) {
		t.Fatalf("after the crash: got %q, want %q", got, want)
	}
	var errs []error
	if err := r.s.Settle(&Settle{ID: id, Tokens: []queue.Token{before.Token},
		Done: func(es []error) { errs = es }}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if len(errs) != 1 || !errors.Is(errs[0], queue.ErrLockLost) {
		t.Fatalf("settling with a token of the earlier life: %v, want %v", errs, queue.ErrLockLost)
	}
}

func TestDeadLetterCarriesItsReasonAndMovesOnce(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	r.send(id, 7, "bad")
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	r.settle()
	k.settle(Reject, k.got[0])
	r.settle()
	r.crash(9)
	dead := r.attach(id, DeadLetter, queue.TakeOptions{})
	dead.c.SetDeliveryLimit(5)
	r.settle()
	if got, want := dead.bodies(), []string{"bad"}; !slices.Equal(got, want) {
		t.Fatalf("dead letters: got %q, want %q", got, want)
	}
	m, err := dead.got[0].Message()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"DeadLetterReason": "because", "DeadLetterErrorDescription": "at length"} {
		v, _ := m.Property(name)
		if got, _ := v.Str(); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	main := r.attach(id, Main, queue.TakeOptions{})
	main.c.SetDeliveryLimit(5)
	r.settle()
	if len(main.got) != 0 {
		t.Fatalf("still in the queue: %q", main.bodies())
	}
}

func TestPropertiesAreMergedOnAbandon(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	r.send(id, 7, "a")
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(2)
	r.settle()
	if err := r.s.Settle(&Settle{ID: id, Tokens: []queue.Token{k.got[0].Token}, Disposition: Abandon,
		Properties: []message.Change{{Name: "tries", Value: codec.Int(1)}}, Done: func([]error) {}}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if len(k.got) != 2 {
		t.Fatalf("got %d deliveries, want 2", len(k.got))
	}
	m, err := k.got[1].Message()
	if err != nil {
		t.Fatal(err)
	}
	v, _ := m.Property("tries")
	if n, ok := v.Int(); !ok || n != 1 {
		t.Fatalf("tries: got %v, want 1", v)
	}
	if k.got[1].Failures != 1 {
		t.Fatalf("failures: got %d, want 1", k.got[1].Failures)
	}
}

func TestReceiveAndDeleteWaitsForItsRemoval(t *testing.T) {
	r := newRig(t, Options{CacheBytes: 1})
	id := r.define("orders", minute)
	r.send(id, 7, "a")
	r.settle()
	k := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: true})
	k.c.SetDeliveryLimit(1)
	r.step()
	if len(k.got) != 0 {
		t.Fatal("delivered before its removal was durable")
	}
	r.settle()
	if got, want := k.bodies(), []string{"a"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	r.crash(2)
	k = r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	r.settle()
	if len(k.got) != 0 {
		t.Fatal("a message taken for good came back")
	}
}

func TestDrainAnswersAfterWhatThereIs(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	r.send(id, 4, "a")
	r.settle()
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(5)
	k.c.Drain()
	r.step()
	if got := len(k.got); got != 1 || k.drained != 1 {
		t.Fatalf("got %d deliveries and %d drained, want 1 and 1", got, k.drained)
	}
	r.send(id, 4, "b")
	r.settle()
	if got := len(k.got); got != 1 {
		t.Fatalf("a drained consumer got %d more", got-1)
	}
}

func TestExpiredLockReturnsTheMessage(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	r.send(id, 4, "a")
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(2)
	r.settle()
	if at, ok := r.s.NextDeadline(); !ok || at.After(r.now.Add(time.Minute)) {
		t.Fatalf("next deadline %v, %v; want one within the lock", at, ok)
	}
	r.now = r.now.Add(time.Minute)
	r.settle()
	if len(k.got) != 2 || k.got[1].Failures != 1 {
		t.Fatalf("after a minute: %d deliveries, want the message again with one failure", len(k.got))
	}
}

func TestFullMailboxSaysSo(t *testing.T) {
	r := newRig(t, Options{Mailbox: 2})
	id := r.define("orders", minute)
	for i := range 3 {
		err := r.s.Send(&Send{Bodies: []*message.Message{text("x")}, Copies: []Copy{{ID: id}},
			Done: func([]queue.SeqNo, error) {}})
		if want := i == 2; errors.Is(err, ErrBusy) != want {
			t.Fatalf("send %d: %v", i, err)
		}
	}
}

func TestUnknownEntity(t *testing.T) {
	r := newRig(t, Options{})
	var got error
	if err := r.s.Send(&Send{Bodies: []*message.Message{text("x")}, Copies: []Copy{{ID: 42}},
		Done: func(_ []queue.SeqNo, err error) { got = err }}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if !errors.Is(got, ErrNoEntity) {
		t.Fatalf("got %v, want %v", got, ErrNoEntity)
	}
}

func TestManyCopiesAreAllOrNone(t *testing.T) {
	r := newRig(t, Options{})
	open := r.define("open", minute)
	full := r.define("full", queue.Config{LockFor: time.Minute, MaxCount: 1})
	r.send(full, 4, "first")
	r.settle()
	var got error
	if err := r.s.Send(&Send{
		Bodies: []*message.Message{text("x")},
		Copies: []Copy{{ID: open}, {ID: full}},
		Done:   func(_ []queue.SeqNo, err error) { got = err },
	}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if !errors.Is(got, queue.ErrFull) {
		t.Fatalf("got %v, want %v", got, queue.ErrFull)
	}
	k := r.attach(open, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	r.settle()
	if len(k.got) != 0 {
		t.Fatal("a refused message is in one of its queues")
	}
}

func TestCallThatWasGivenUpIsNotRunLater(t *testing.T) {
	r := newRig(t, Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("no maxCommitDelay")
	cancel(reason)
	ran := false
	if err := r.s.Call(ctx, func(*Tx) error { ran = true; return nil }); !errors.Is(err, reason) {
		t.Fatalf("got %v, want %v", err, reason)
	}
	r.settle()
	if ran {
		t.Fatal("it was run for a caller that had left")
	}
}
