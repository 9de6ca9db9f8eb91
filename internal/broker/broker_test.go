// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/monitor"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// rig is a broker that runs on a memory disk.
type rig struct {
	*Broker
	t    testing.TB
	disk vfs.FS
	stop func()
}

// start runs a broker on a fresh disk and stops it when the test ends.
func start(t testing.TB) *rig { return startOn(t, vfs.NewMem()) }

func startOn(t testing.TB, disk vfs.FS) *rig {
	t.Helper()
	return startWith(t, disk, wal.Options{SegmentSize: 1 << 20})
}

func startWith(t testing.TB, disk vfs.FS, o wal.Options) *rig {
	t.Helper()
	w, err := wal.Open(disk, o)
	if err != nil {
		t.Fatalf("open the journal: %v", err)
	}
	var shards []*queueserver.Shard
	for i := range 2 {
		s, err := queueserver.Open(context.Background(), w, journal.Shard(i), queueserver.Options{NewMonitor: monitor.New(slog.New(slog.DiscardHandler))})
		if err != nil {
			t.Fatalf("open shard %d: %v", i, err)
		}
		shards = append(shards, s)
	}
	b, err := Open(shards, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("open the broker: %v", err)
	}
	top, stopTop := context.WithCancel(t.Context())
	middle, stopMiddle := context.WithCancel(context.WithoutCancel(t.Context()))
	low, stopLow := context.WithCancel(context.WithoutCancel(t.Context()))
	var upper, mid, lower sync.WaitGroup
	upper.Go(func() { b.Run(top) })
	for _, s := range shards {
		mid.Go(func() { s.Run(middle) })
	}
	lower.Go(func() { w.Run(low) })
	r := &rig{Broker: b, t: t, disk: disk}
	r.stop = sync.OnceFunc(func() {
		stopTop()
		upper.Wait()
		stopMiddle()
		mid.Wait()
		stopLow()
		lower.Wait()
		if err := w.Close(); err != nil {
			t.Errorf("close the journal: %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// restart stops the broker cleanly and starts another on the same disk.
func (r *rig) restart() *rig {
	r.t.Helper()
	r.stop()
	return startOn(r.t, r.disk)
}

// damage flips a bit of every copy of a text on the disk. Only bodies that are not
// in memory notice it: restart before.
func (r *rig) damage(text string) {
	r.t.Helper()
	names, err := r.disk.List(".")
	if err != nil {
		r.t.Fatal(err)
	}
	found := 0
	for _, name := range names {
		f, err := r.disk.Open(name)
		if err != nil {
			continue // a directory
		}
		size, err := f.Size()
		if err != nil {
			r.t.Fatal(err)
		}
		raw := make([]byte, size)
		if _, err := f.ReadAt(raw, 0); err != nil && !errors.Is(err, io.EOF) {
			r.t.Fatal(err)
		}
		for at := 0; ; at++ {
			i := bytes.Index(raw[at:], []byte(text))
			if i < 0 {
				break
			}
			at += i
			if err := vfs.NewFault(r.disk).FlipBit(name, int64(at)*8); err != nil {
				r.t.Fatal(err)
			}
			found++
		}
		f.Close()
	}
	if found == 0 {
		r.t.Fatalf("%q is nowhere on the disk", text)
	}
}

func (r *rig) queue(q entity.Queue) {
	r.t.Helper()
	if _, err := r.CreateQueue(r.t.Context(), q); err != nil {
		r.t.Fatalf("create queue %q: %v", q.Name, err)
	}
}

func (r *rig) topic(t entity.Topic, subs ...entity.Subscription) {
	r.t.Helper()
	if _, err := r.CreateTopic(r.t.Context(), t); err != nil {
		r.t.Fatalf("create topic %q: %v", t.Name, err)
	}
	for _, s := range subs {
		if _, err := r.CreateSubscription(r.t.Context(), t.Name, s); err != nil {
			r.t.Fatalf("create subscription %q: %v", s.Name, err)
		}
	}
}

func sql(name, expr string) entity.Rule {
	return entity.Rule{Name: name, Filter: entity.Filter{Kind: entity.SQLFilter, SQL: expr}}
}

// msg is a message with a body and pairs of application properties.
func msg(body string, pairs ...string) *message.Message {
	d := message.Draft{Body: []byte(body)}
	for i := 0; i < len(pairs); i += 2 {
		d.Application = append(d.Application, message.Pair{Name: pairs[i], Value: codec.String(pairs[i+1])})
	}
	return d.Message()
}

// trySend sends a batch and returns what the sender is told.
func (r *rig) trySend(addr string, batch ...*message.Message) error {
	r.t.Helper()
	s, err := r.OpenSender(addr, SenderOptions{})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	s.Send(batch, func(err error) { done <- err })
	return <-done
}

func (r *rig) send(addr string, batch ...*message.Message) {
	r.t.Helper()
	if err := r.trySend(addr, batch...); err != nil {
		r.t.Fatalf("send to %q: %v", addr, err)
	}
}

// sink hands deliveries to a channel that is larger than any allowance here.
type sink struct {
	ds      chan Delivery
	drained chan struct{}
	ended   chan error
}

func newSink() *sink {
	return &sink{ds: make(chan Delivery, 1000), drained: make(chan struct{}, 10), ended: make(chan error, 1)}
}

func (s *sink) Deliver(ds []Delivery) {
	for _, d := range ds {
		s.ds <- d
	}
}
func (s *sink) Drained()        { s.drained <- struct{}{} }
func (s *sink) Ended(err error) { s.ended <- err }

// receive opens a receiver that may have up to n messages.
func (r *rig) receive(addr string, n uint64, o ReceiverOptions) (*Receiver, *sink) {
	r.t.Helper()
	k := newSink()
	o.Sink = k
	rec, err := r.OpenReceiver(r.t.Context(), addr, o)
	if err != nil {
		r.t.Fatalf("receive from %q: %v", addr, err)
	}
	rec.SetDeliveryLimit(n)
	return rec, k
}

func body(t testing.TB, d Delivery) string {
	t.Helper()
	m, err := d.Message()
	if err != nil {
		t.Fatalf("load message %d: %v", d.Seq, err)
	}
	var b []byte
	for data := range m.Data() {
		b = append(b, data...)
	}
	return string(b)
}

// take receives and completes everything that is there, in order.
func (r *rig) take(addr string) []string {
	r.t.Helper()
	rec, k := r.receive(addr, 1000, ReceiverOptions{})
	defer rec.Close()
	rec.Drain()
	<-k.drained
	var bodies []string
	for len(k.ds) > 0 {
		d := <-k.ds
		bodies = append(bodies, body(r.t, d))
		r.settle(rec, d, Outcome{Disposition: Complete})
	}
	return bodies
}

func (r *rig) settle(rec *Receiver, d Delivery, o Outcome) {
	r.t.Helper()
	done := make(chan error, 1)
	rec.Settle([]queue.Token{d.Token}, o, func(errs []error) { done <- errors.Join(errs...) })
	if err := <-done; err != nil {
		r.t.Fatalf("settle message %d: %v", d.Seq, err)
	}
}

func wantBodies(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %q, want %q", what, got, want)
	}
}

// P1 and the example of the documents on one plain queue.
func TestPriorityPropertySortsAPlainQueue(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "orders"})
	for i := range 3 {
		r.send("orders", msg(fmt.Sprint("low", i), "Priority", "Low"))
	}
	for i := range 3 {
		r.send("orders", msg(fmt.Sprint("high", i), "Priority", "High"))
	}
	r = r.restart()
	wantBodies(t, "orders", r.take("ORDERS"), "high0", "high1", "high2", "low0", "low1", "low2")
}

func TestEntitiesSurviveARestart(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "Orders", MaxDeliveryCount: 3})
	r.topic(entity.Topic{Name: "events"}, entity.Subscription{Name: "high", Rules: []entity.Rule{sql("r", "Priority = 'High'")}})
	r = r.restart()
	q, err := r.Queue("orders")
	if err != nil || q.MaxDeliveryCount != 3 || q.Name != "Orders" {
		t.Fatalf("queue: %+v, %v", q, err)
	}
	r.send("events", msg("a", "Priority", "High"), msg("b", "Priority", "Low"))
	wantBodies(t, "high", r.take("events/subscriptions/HIGH"), "a")
}

func TestRulesWithoutActionsGiveOneCopy(t *testing.T) {
	r := start(t)
	r.topic(entity.Topic{Name: "t"},
		entity.Subscription{Name: "both", Rules: []entity.Rule{sql("a", "x = '1'"), sql("b", "y = '1'")}},
		entity.Subscription{Name: "all"},
		entity.Subscription{Name: "none", Rules: []entity.Rule{sql("a", "x = '2'")}})
	r.send("t", msg("m", "x", "1", "y", "1"))
	wantBodies(t, "both", r.take("t/Subscriptions/both"), "m")
	wantBodies(t, "all", r.take("t/Subscriptions/all"), "m")
	wantBodies(t, "none", r.take("t/Subscriptions/none"))
}

func TestRulesWithActionsGiveACopyEach(t *testing.T) {
	r := start(t)
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s", Rules: []entity.Rule{
		{Name: "stamp", Filter: entity.Filter{Kind: entity.TrueFilter}, Action: entity.Action{SQL: "SET Priority = 'High'; SET colour = 'red'"}},
		{Name: "plain", Filter: entity.Filter{Kind: entity.TrueFilter}},
	}})
	r.send("t", msg("m", "colour", "blue"))
	rec, k := r.receive("t/Subscriptions/s", 10, ReceiverOptions{})
	first, second := <-k.ds, <-k.ds
	// The action made its copy urgent, so it comes first.
	for _, c := range []struct {
		d            Delivery
		rule, colour string
	}{{first, "stamp", "red"}, {second, "", "blue"}} {
		m, err := c.d.Message()
		if err != nil {
			t.Fatal(err)
		}
		rule, _ := m.Property("RuleName")
		got, _ := rule.Str()
		colour, _ := m.Property("colour")
		gotColour, _ := colour.Str()
		if got != c.rule || gotColour != c.colour {
			t.Errorf("copy: RuleName %q, colour %q; want %q, %q", got, gotColour, c.rule, c.colour)
		}
	}
	rec.Close()
}

func TestAddedRuleTakesEffectForTheNextMessage(t *testing.T) {
	r := start(t)
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s", Rules: []entity.Rule{sql("a", "x = '1'")}})
	r.send("t", msg("before", "x", "2"))
	if _, err := r.CreateRule(t.Context(), "t", "s", sql("b", "x = '2'")); err != nil {
		t.Fatal(err)
	}
	r.send("t", msg("after", "x", "2"))
	wantBodies(t, "s", r.take("t/Subscriptions/s"), "after")
	if err := r.DeleteRule(t.Context(), "t", "s", "B"); err != nil {
		t.Fatal(err)
	}
	r.send("t", msg("later", "x", "2"))
	wantBodies(t, "s", r.take("t/Subscriptions/s"))
}

func TestForwardingWithinAndBetweenShards(t *testing.T) {
	r := start(t)
	for i := range 8 { // eight names surely lie in both shards
		to := fmt.Sprint("to", i)
		from := fmt.Sprint("from", i)
		r.queue(entity.Queue{Name: to})
		r.queue(entity.Queue{Name: from, ForwardTo: to})
		r.send(from, msg("m"))
		_, k := r.receive(to, 1, ReceiverOptions{})
		if got := body(t, <-k.ds); got != "m" {
			t.Fatalf("%s: got %q", to, got)
		}
	}
}

func TestForwardsThatComeBackAreRefused(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "c"})
	r.queue(entity.Queue{Name: "b", ForwardTo: "c"})
	r.queue(entity.Queue{Name: "a", ForwardTo: "b"})
	_, err := r.UpdateQueue(t.Context(), entity.Queue{Name: "c", ForwardTo: "a"})
	if !errors.Is(err, ErrInvalid) {
		t.Fatalf("got %v, want %v", err, ErrInvalid)
	}
}

func TestUndeliverableForwardIsKeptAmongTheTransferDeadLetters(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "nowhere"})
	r.queue(entity.Queue{Name: "a", ForwardTo: "nowhere"})
	if err := r.DeleteQueue(t.Context(), "nowhere"); err != nil {
		t.Fatal(err)
	}
	r.send("a", msg("m"))
	_, k := r.receive("a/$Transfer/$DeadLetterQueue", 1, ReceiverOptions{})
	if got := body(t, <-k.ds); got != "m" {
		t.Fatalf("got %q", got)
	}
}

func TestForwardedDeadLetterNamesItsSource(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "graveyard"})
	r.queue(entity.Queue{Name: "orders", ForwardDeadLetteredMessagesTo: "graveyard"})
	r.send("orders", msg("m"))
	rec, k := r.receive("orders", 1, ReceiverOptions{})
	r.settle(rec, <-k.ds, Outcome{Disposition: DeadLetter, Reason: "bad"})
	_, graves := r.receive("graveyard", 1, ReceiverOptions{})
	d := <-graves.ds
	m, err := d.Message()
	if err != nil {
		t.Fatal(err)
	}
	v, _ := m.Annotation("x-opt-deadletter-source")
	if got, _ := v.Str(); got != "orders" {
		t.Fatalf("source: got %q, want orders", got)
	}
}

func TestDuplicatesAreAcceptedAndDropped(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q", RequiresDuplicateDetection: true})
	r.topic(entity.Topic{Name: "t", RequiresDuplicateDetection: true}, entity.Subscription{Name: "s"})
	for _, addr := range []string{"q", "t"} {
		for range 3 {
			d := message.Draft{Body: []byte("m"), MessageID: codec.String("same")}
			r.send(addr, d.Message())
		}
	}
	wantBodies(t, "q", r.take("q"), "m")
	_, k := r.receive("t/Subscriptions/s", 5, ReceiverOptions{})
	if got := body(t, <-k.ds); got != "m" {
		t.Fatalf("got %q", got)
	}
	rt, err := r.Runtime(t.Context(), "t/Subscriptions/s")
	if err != nil || rt.Active != 1 {
		t.Fatalf("subscription has %d messages (%v), want 1", rt.Active, err)
	}
}

func TestErrors(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q", MaxMessageSizeInKilobytes: 1})
	r.queue(entity.Queue{Name: "off", Status: entity.Disabled})
	r.queue(entity.Queue{Name: "sessions", RequiresSession: true})
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s"})
	ctx := t.Context()
	open := func(addr string, o ReceiverOptions) error {
		o.Sink = newSink()
		_, err := r.OpenReceiver(ctx, addr, o)
		return err
	}
	_, exists := r.CreateQueue(ctx, entity.Queue{Name: "Q"})
	_, taken := r.CreateTopic(ctx, entity.Topic{Name: "q"})
	_, badName := r.CreateQueue(ctx, entity.Queue{Name: "a//b"})
	_, badRule := r.CreateRule(ctx, "t", "s", sql("r", "x ="))
	_, fixed := r.UpdateQueue(ctx, entity.Queue{Name: "q", RequiresSession: true})
	for what, c := range map[string]struct{ got, take error }{
		"unknown queue":              {r.trySend("nothing", msg("x")), ErrNotFound},
		"send to a subscription":     {r.trySend("t/Subscriptions/s", msg("x")), ErrNotAllowed},
		"send to dead letters":       {r.trySend("q/$DeadLetterQueue", msg("x")), ErrNotAllowed},
		"receive from a topic":       {open("t", ReceiverOptions{}), ErrNotAllowed},
		"too large":                  {r.trySend("q", msg(string(make([]byte, 2000)))), ErrTooLarge},
		"disabled, sending":          {r.trySend("off", msg("x")), ErrDisabled},
		"disabled, receiving":        {open("off", ReceiverOptions{}), ErrDisabled},
		"no session, sending":        {r.trySend("sessions", msg("x")), ErrSessionRequired},
		"no session, receiving":      {open("sessions", ReceiverOptions{}), ErrNotAllowed},
		"session of a plain queue":   {open("q", ReceiverOptions{NextSession: true}), ErrNotAllowed},
		"name taken":                 {exists, ErrExists},
		"name taken by another kind": {taken, ErrExists},
		"no name":                    {badName, ErrInvalid},
		"rule that does not parse":   {badRule, ErrInvalid},
		"property that is fixed":     {fixed, ErrInvalid},
		"unknown token":              {r.Settle(ctx, "q", []queue.Token{{Seq: 1, Nonce: 1}}, Outcome{}), ErrLockLost},
		"unknown scheduled message":  {r.CancelScheduled(ctx, "q", []queue.SeqNo{9}), ErrMessageNotFound},
	} {
		if !errors.Is(c.got, c.take) {
			t.Errorf("%s: got %v, want %v", what, c.got, c.take)
		}
	}
}

func TestSessionIsExclusiveAndGoesBack(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q", RequiresSession: true})
	send := func(session, b string) {
		d := message.Draft{Body: []byte(b), SessionID: session}
		r.send("q", d.Message())
	}
	send("one", "1a")
	send("one", "1b")
	one := "one"
	rec, k := r.receive("q", 1, ReceiverOptions{Session: &one})
	if id, until := rec.Session(); id != "one" || until.IsZero() {
		t.Fatalf("session %q until %v", id, until)
	}
	d := <-k.ds
	if got := body(t, d); got != "1a" {
		t.Fatalf("got %q", got)
	}
	_, err := r.OpenReceiver(t.Context(), "q", ReceiverOptions{Session: &one, Sink: newSink()})
	if !errors.Is(err, ErrSessionLocked) {
		t.Fatalf("second receiver of the session: %v, want %v", err, ErrSessionLocked)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := r.OpenReceiver(ctx, "q", ReceiverOptions{NextSession: true, Sink: newSink()}); !errors.Is(err, ErrTimeout) {
		t.Fatalf("next session while all are locked: %v, want %v", err, ErrTimeout)
	}
	if err := r.SetSessionState(t.Context(), "q", rec.SessionLock(), []byte("state")); err != nil {
		t.Fatal(err)
	}
	lost := rec.SessionLock()
	rec.Close()
	next, k := r.receive("q", 2, ReceiverOptions{NextSession: true})
	if id, _ := next.Session(); id != "one" {
		t.Fatalf("next session %q, want one", id)
	}
	var tokens []queue.Token
	for _, want := range []string{"1a", "1b"} {
		d := <-k.ds
		if got := body(t, d); got != want || d.Failures != 0 {
			t.Fatalf("got %q with %d failures, want %q uncounted", got, d.Failures, want)
		}
		tokens = append(tokens, d.Token)
	}
	for _, held := range [][]queue.SessionLock{nil, {lost}} {
		if _, err := r.Renew(t.Context(), "q", tokens, held...); !errors.Is(err, ErrSessionLockLost) {
			t.Errorf("renew with %v: %v, want %v", held, err, ErrSessionLockLost)
		}
		if err := r.Settle(t.Context(), "q", tokens[:1], Outcome{Disposition: Complete}, held...); !errors.Is(err, ErrSessionLockLost) {
			t.Errorf("settle with %v: %v, want %v", held, err, ErrSessionLockLost)
		}
	}
	for _, held := range [][]queue.SessionLock{{next.SessionLock(), lost}, {lost, next.SessionLock()}} {
		if _, err := r.Renew(t.Context(), "q", tokens, held...); err != nil {
			t.Errorf("renew by the holder: %v", err)
		}
	}
	// 15: who has lost a session does not speak for it, also while another has it.
	if _, err := r.RenewSession(t.Context(), "q", lost); !errors.Is(err, ErrSessionLockLost) {
		t.Errorf("renew a lost session: %v, want %v", err, ErrSessionLockLost)
	}
	if err := r.SetSessionState(t.Context(), "q", lost, nil); !errors.Is(err, ErrSessionLockLost) {
		t.Errorf("set the state of a lost session: %v, want %v", err, ErrSessionLockLost)
	}
	if _, err := r.SessionState(t.Context(), "q", lost); !errors.Is(err, ErrSessionLockLost) {
		t.Errorf("state of a lost session: %v, want %v", err, ErrSessionLockLost)
	}
	r = r.restart()
	again, _ := r.receive("q", 0, ReceiverOptions{Session: &one})
	state, err := r.SessionState(t.Context(), "q", again.SessionLock())
	if err != nil || string(state) != "state" {
		t.Fatalf("state %q, %v", state, err)
	}
}

func TestPauseSuspendsWithoutLosingAnything(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.send("q", msg("m"))
	if err := r.Pause(t.Context(), "q", Pause{Receiving: true}); err != nil {
		t.Fatal(err)
	}
	rec, k := r.receive("q", 1, ReceiverOptions{})
	rec.Drain()
	<-k.drained
	if len(k.ds) != 0 {
		t.Fatal("a paused queue delivered a message")
	}
	if err := r.Pause(t.Context(), "q", Pause{}); err != nil {
		t.Fatal(err)
	}
	rec.SetDeliveryLimit(1)
	if got := body(t, <-k.ds); got != "m" {
		t.Fatalf("got %q", got)
	}
}

func TestDeletedQueueEndsItsReceivers(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	_, k := r.receive("q", 1, ReceiverOptions{})
	if err := r.DeleteQueue(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	if err := <-k.ended; !errors.Is(err, ErrNotFound) {
		t.Fatalf("ended with %v, want %v", err, ErrNotFound)
	}
	r.queue(entity.Queue{Name: "q"})
	wantBodies(t, "a new queue of that name", r.take("q"))
}

func TestScheduledOnATopicIsRoutedWhenItsTimeComes(t *testing.T) {
	r := start(t)
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s"})
	at := time.Now().Add(50 * time.Millisecond)
	d := message.Draft{Body: []byte("later"), Annotations: []message.Pair{{
		Name: message.AnnotationScheduledEnqueueTime, Value: codec.Timestamp(at)}}}
	seqs, err := r.Schedule(t.Context(), "t", []*message.Message{d.Message()}, SenderOptions{})
	if err != nil || len(seqs) != 1 || seqs[0] == 0 {
		t.Fatalf("schedule: %v, %v", seqs, err)
	}
	_, k := r.receive("t/Subscriptions/s", 1, ReceiverOptions{})
	if got := body(t, <-k.ds); got != "later" {
		t.Fatalf("got %q", got)
	}
	if early := time.Until(at); early > time.Millisecond {
		t.Fatalf("delivered %v too early", early)
	}
}
