// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// lease is what a journal of another machine would add: a claim that is certain for
// some time only.
type lease struct {
	r     *rig
	now   time.Time        // on the monotonic clock
	read  func() time.Time // that clock
	until time.Time
}

// leased returns a rig whose claim is certain for a second.
func leased(t *testing.T) (*rig, *lease) {
	l := &lease{now: time.Unix(1000, 0)}
	l.read = func() time.Time { return l.now }
	l.r = newRig(t, Options{Monotonic: func() time.Time { return l.read() }})
	l.prolong()
	return l.r, l
}

// prolong reports what the journal would when it has heard from the others.
func (l *lease) prolong() {
	l.until = l.now.Add(time.Second)
	st := l.r.wal.Status(l.r.s.manual().Claim())
	st.Lease = l.until
	l.r.s.manual().Report(st)
}

// commit makes everything durable, and has the journal say so with the lease as it
// was.
func (l *lease) commit() {
	l.r.t.Helper()
	for range 3 {
		if err := l.r.wal.Commit(); err != nil {
			l.r.t.Fatal(err)
		}
	}
	st := l.r.wal.Status(l.r.s.manual().Claim())
	st.Lease = l.until
	l.r.s.manual().Report(st)
}

// After its lease a shard says nothing: it answers nobody and hands out nothing, also
// what is durable, and goes on when the lease is prolonged.
func TestNothingLeavesAfterTheLease(t *testing.T) {
	r, l := leased(t)
	id := r.define("q", minute)
	k := r.attach(id, Main, queue.TakeOptions{})
	l.prolong()
	k.c.SetDeliveryLimit(10)
	acked := r.send(id, 4, "one")
	r.step()
	l.now = l.until
	l.commit()
	for range 3 {
		r.step()
	}
	if *acked || len(k.got) != 0 {
		t.Fatalf("after the lease: answered %v, %d messages handed out", *acked, len(k.got))
	}
	if at, due := r.s.NextDeadline(); due {
		t.Errorf("after the lease it has something to do at %v", at)
	}
	l.prolong()
	r.step()
	l.commit()
	r.step()
	if !*acked || len(k.got) != 1 {
		t.Errorf("with a new lease: answered %v, %d messages handed out", *acked, len(k.got))
	}
}

// A lease that ends while a step is under way holds back what the step hands out, in
// order.
func TestLeaseEndsWithinAStep(t *testing.T) {
	r, l := leased(t)
	l.until = l.now.Add(time.Hour)
	id := r.define("q", minute)
	k := r.attach(id, Main, queue.TakeOptions{})
	r.send(id, 4, "one")
	r.send(id, 4, "two")
	r.settle()
	ticks := 0
	l.read = func() time.Time { // the first look of a step is within it
		ticks++
		return l.now.Add(time.Duration(ticks) * time.Minute)
	}
	k.c.SetDeliveryLimit(1)
	l.until = l.now.Add(2 * time.Minute)
	l.commit()
	r.step()
	if len(k.got) != 0 || ticks < 2 {
		t.Fatalf("%d messages were handed out after the lease, %d looks at the clock", len(k.got), ticks)
	}
	l.read = func() time.Time { return l.now }
	k.c.SetDeliveryLimit(2)
	l.prolong()
	r.step()
	if len(k.got) != 2 || k.got[0].Seq > k.got[1].Seq {
		t.Errorf("with a new lease %d messages came, want 2 in order", len(k.got))
	}
}

// readOnly is a journal to which nothing may be appended.
type readOnly struct {
	journal.Journal
	t *testing.T
}

func (j readOnly) Append(c journal.Claim, g *journal.Group) error {
	j.t.Errorf("appended %d records", len(g.Records))
	return j.Journal.Append(c, g)
}

// A shard that has lost its claim stops without having appended anything. Everybody is
// told why, then and later, and what another shard of the journal has is not affected.
func TestLostClaimEndsTheShard(t *testing.T) {
	r := newRig(t, Options{})
	other, err := Open(t.Context(), r.wal, 1, r.opts)
	if err != nil {
		t.Fatal(err)
	}
	id := r.define("q", minute)
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	r.settle()
	var waiting error
	err = r.s.Send(&Send{Bodies: []*message.Message{text("one")}, Copies: []Copy{{ID: id}}, Done: func(_ []queue.SeqNo, err error) { waiting = err }})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := journal.ClaimOne(t.Context(), r.wal, 0); err != nil {
		t.Fatal(err)
	}
	if err := r.wal.Commit(); err != nil {
		t.Fatal(err)
	}
	r.s.manual().SetJournal(readOnly{r.s.manual().Journal(), t})
	if err := r.s.Run(t.Context()); !errors.Is(err, ErrMoved) {
		t.Errorf("run: %v, want %v", err, ErrMoved)
	}
	if !errors.Is(waiting, ErrMoved) || !errors.Is(k.ended, ErrMoved) || len(k.got) != 0 {
		t.Errorf("the sender was told %v, the receiver %v with %d messages", waiting, k.ended, len(k.got))
	}
	if err := r.s.Send(&Send{}); !errors.Is(err, ErrMoved) {
		t.Errorf("a later send: %v, want %v", err, ErrMoved)
	}
	if !r.s.Stats().Moved || other.Stats().Moved {
		t.Error("the statistics say of the wrong shard that it has moved")
	}
	other.Step(r.now)
	if other.Failed() != nil {
		t.Errorf("another shard: %v", other.Failed())
	}
}

// A shard that stops in good order releases its claim.
func TestStopReleasesTheClaim(t *testing.T) {
	r := newRig(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if st := r.wal.Status(r.s.manual().Claim()); !errors.Is(st.Err, journal.ErrFenced) {
		t.Errorf("after a stop the claim is %+v, want it released", st)
	}
}
