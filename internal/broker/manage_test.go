// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// A number that is named twice is cancelled once, and a request that fails cancels
// nothing (B11).
func TestCancelScheduledIsAllOrNothing(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	d := message.Draft{Body: []byte("later"), Annotations: []message.Pair{{
		Name: message.AnnotationScheduledEnqueueTime, Value: codec.Timestamp(time.Now().Add(time.Hour))}}}
	seqs, err := r.Schedule(t.Context(), "q", []*message.Message{d.Message(), d.Message(), d.Message()}, SenderOptions{})
	if err != nil {
		t.Fatalf("schedule: %v", err)
	}
	for _, step := range []struct {
		cancel []queue.SeqNo
		take   error
		left   int64
	}{
		{[]queue.SeqNo{seqs[0], 999}, ErrMessageNotFound, 3},
		{[]queue.SeqNo{seqs[0], seqs[0]}, nil, 2},
		{[]queue.SeqNo{seqs[0]}, ErrMessageNotFound, 2},
		{[]queue.SeqNo{seqs[2], seqs[1], seqs[2], seqs[1]}, nil, 0},
	} {
		if err := r.CancelScheduled(t.Context(), "q", step.cancel); !errors.Is(err, step.take) {
			t.Errorf("cancel %v: got %v, want %v", step.cancel, err, step.take)
		}
		rt, err := r.Runtime(t.Context(), "q")
		if err != nil || rt.Scheduled != step.left {
			t.Errorf("after cancel %v: %d scheduled, %v, want %d", step.cancel, rt.Scheduled, err, step.left)
		}
	}
}

// What is about many messages takes several steps, and its answer is the same (A9).
func TestManagingManyMessages(t *testing.T) {
	const messages = 2500 // more than a step visits
	r := start(t)
	r.queue(entity.Queue{Name: "plain"})
	r.queue(entity.Queue{Name: "sessions", RequiresSession: true})
	batch := make([]*message.Message, 0, 100)
	for i := range messages {
		d := message.Draft{Body: []byte("x"), SessionID: fmt.Sprintf("%04d", i%1250)}
		if batch = append(batch, d.Message()); len(batch) == cap(batch) {
			r.send("plain", batch...)
			r.send("sessions", batch...)
			batch = make([]*message.Message, 0, 100)
		}
	}
	id := "1200"
	for _, q := range []string{"plain", "sessions"} {
		ds, err := r.Peek(t.Context(), q, 0, 10, &id)
		if err != nil || len(ds) != 2 || ds[0].Seq != 1201 || ds[1].Seq != 2451 {
			t.Errorf("%s: peek at session %s: %d messages, %v", q, id, len(ds), err)
		}
	}
	ids, err := r.Sessions(t.Context(), "sessions", time.Time{}, 1100, 3)
	if want := []string{"1100", "1101", "1102"}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("sessions %q, %v, want %q", ids, err, want)
	}
	if x, err := r.Explain(t.Context(), "plain", 2400); err != nil || x.Ahead != 2399 {
		t.Errorf("%d ahead of message 2400, %v", x.Ahead, err)
	}
	if rt, err := r.Runtime(t.Context(), "plain"); err != nil || rt.Active != messages || len(rt.Levels) != 1 || rt.Levels[0].Ready != messages {
		t.Errorf("runtime %+v, %v", rt, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Purge(ctx, "sessions"); !errors.Is(err, context.Canceled) {
		t.Errorf("purge by a caller who is gone: %v", err)
	}
	if n, err := r.DeleteMessages(t.Context(), "plain", time.Time{}, 1100); n != 1100 || err != nil {
		t.Errorf("deleted %d of %d, %v", n, 1100, err)
	}
	if n, err := r.Purge(t.Context(), "plain"); n != messages-1100 || err != nil {
		t.Errorf("purged %d, %v, want %d", n, err, messages-1100)
	}
	if err := r.DeleteQueue(t.Context(), "sessions"); err != nil {
		t.Errorf("delete: %v", err)
	}
	again := r.restart()
	if rt, err := again.Runtime(t.Context(), "plain"); err != nil || rt.Active != 0 {
		t.Errorf("after a restart %+v, %v", rt, err)
	}
}

// A policy whose order needs other lines is in force when SetPolicy returns (A9).
func TestSetPolicyPutsAnotherOrderInForce(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	for range 30 {
		batch := make([]*message.Message, 100)
		for i := range batch {
			batch[i] = msg("x", "tenant", "flood")
		}
		r.send("q", batch...)
	}
	r.send("q", msg("last", "tenant", "one"))
	if _, err := r.SetPolicy(t.Context(), "q", []byte(`{"fairKey": "tenant"}`)); err != nil {
		t.Fatalf("set policy: %v", err)
	}
	_, k := r.receive("q", 2, ReceiverOptions{})
	if first, second := body(t, <-k.ds), body(t, <-k.ds); first != "last" && second != "last" {
		t.Errorf("got %q and %q; want the one of the other tenant among them", first, second)
	}
}

// The shard keeps a settlement until it is done, and its caller is told then, once, whether it waits
// or not.
func TestSettlementSaysWhenItIsOver(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, x := range map[string]struct {
		ctx    context.Context
		addr   string
		tokens int
	}{
		"one": {t.Context(), "q", 1}, "many": {t.Context(), "q", 1000}, "nowhere": {t.Context(), "none", 1}, "left": {gone, "q", 1000},
	} {
		over := make(chan struct{}, 2)
		if err := r.SettleThen(x.ctx, x.addr, make([]queue.Token, x.tokens), Outcome{Disposition: Complete}, func() { over <- struct{}{} }); err == nil {
			t.Errorf("%s: settled what is not locked", name)
		}
		<-over
		if _, err := r.Renew(t.Context(), "q", make([]queue.Token, 1)); err == nil || len(over) > 0 {
			t.Errorf("%s: it is over twice (%v)", name, err)
		}
	}
}
