// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// crowded is a queue on a full disk, and what a client has that asks for more and more.
type crowded struct {
	*rig
	t      *testing.T
	id     ID
	k      *taker // has locked some
	lock   queue.SessionLock
	stored int
}

// fillQueue fills the disk with small messages.
func (c *crowded) fillQueue(sessions bool, ttl time.Duration) {
	c.t.Helper()
	full := false
	for i := 0; !full; i++ {
		a := queue.Arrival{InSession: sessions, TTL: ttl}
		if sessions {
			a.Session = fmt.Sprint(strings.Repeat("s", 100), i%3)
		}
		if err := c.s.Send(&Send{
			Bodies: []*message.Message{text(strings.Repeat("x", 40))},
			Copies: []Copy{{ID: c.id, Arrival: a}},
			Done: func(_ []queue.SeqNo, err error) {
				full = full || errors.Is(err, ErrDiskFull)
				if err == nil {
					c.stored++
				} else if !full {
					c.t.Fatalf("send: %v", err)
				}
			},
		}); err != nil {
			c.t.Fatal(err)
		}
		if i%20 == 0 {
			c.rig.settle()
		}
	}
	c.rig.settle()
	c.disk.SetOthers(1 << 40)
}

// check fails the test unless there is space to settle everything.
func (c *crowded) check() {
	c.t.Helper()
	e := c.s.entities[c.id]
	waiting := e.parts[Main].q.Counts().Total() + e.parts[DeadLetter].q.Counts().Total()
	if st := c.wal.Stats(); c.s.Stuck() || st.Available < uint64(waiting)*oneSettlement {
		c.t.Fatalf("stuck: %t; %d bytes are available, settling %d messages takes %d: %+v", c.s.Stuck(), st.Available, waiting, waiting*oneSettlement, st)
	}
}

// Whatever clients ask for again and again, or much of it in one step, on a full disk: what
// settling takes is left alone, and everything can be settled.
func TestWhatFreesNothingLeavesSpaceToSettle(t *testing.T) {
	long := strings.Repeat("because ", 512)
	refused := func(c *crowded, err error) {
		if err != nil && !errors.Is(err, ErrDiskFull) && !errors.Is(err, queue.ErrLockLost) {
			c.t.Errorf("refused with %v", err)
		}
	}
	settle := func(c *crowded, v Disposition, reason string, set []message.Change, ds ...Delivery) {
		x := &Settle{ID: c.id, Disposition: v, Reason: reason, Properties: set, Done: func(errs []error) {
			for _, err := range errs {
				refused(c, err)
			}
		}}
		for _, d := range ds {
			x.Tokens = append(x.Tokens, d.Token)
		}
		if err := c.s.Settle(x); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name     string
		sessions bool
		locked   int
		ttl      time.Duration
		ask      func(c *crowded, round int) // much of it at once
	}{
		{name: "session states", sessions: true, ask: func(c *crowded, round int) {
			for i := range 50 {
				state := []byte(strings.Repeat(fmt.Sprint(round, i), 3000))
				if err := Post(c.s, SetSessionState{Queue: QueueID{Entity: c.id}, Lock: c.lock, State: state},
					func(_ struct{}, err error) { refused(c, err) }); err != nil {
					c.t.Fatal(err)
				}
			}
		}},
		{name: "session states that are cleared", sessions: true, ask: func(c *crowded, round int) {
			for range 3000 {
				if err := Post(c.s, SetSessionState{Queue: QueueID{Entity: c.id}, Lock: c.lock, Clear: true},
					func(_ struct{}, err error) { refused(c, err) }); err != nil {
					c.t.Fatal(err)
				}
			}
		}},
		{name: "received and deleted, and returned", ask: func(c *crowded, round int) {
			for range 60 {
				k := c.attach(c.id, Main, queue.TakeOptions{ReceiveAndDelete: true})
				if err := k.c.SetDeliveryLimit(1 << 40); err != nil {
					c.t.Fatal(err)
				}
				c.step()
				c.work()
				c.step()
				if err := k.c.Detach(); err != nil {
					c.t.Fatal(err)
				}
				c.step()
				c.sync()
				c.step()
				c.check()
			}
		}},
		{name: "definitions", ask: func(c *crowded, round int) {
			for i := range 50 {
				meta := []byte(strings.Repeat(fmt.Sprint(round, i), 3000))
				if err := Post(c.s, Configure{ID: c.id, Meta: meta}, func(_ struct{}, err error) { refused(c, err) }); err != nil {
					c.t.Fatal(err)
				}
			}
		}},
		{name: "new entities", ask: func(c *crowded, round int) {
			for i := range 50 {
				def := Definition{Name: fmt.Sprint("more-", round, "-", i), Meta: []byte(strings.Repeat("m", 10_000))}
				if err := Post(c.s, Define{Definition: def}, func(_ ID, err error) { refused(c, err) }); err != nil {
					c.t.Fatal(err)
				}
			}
		}},
		{name: "dead letters with long reasons", locked: 2000, ask: func(c *crowded, round int) {
			for range min(300, len(c.k.got)) {
				settle(c, Reject, long, nil, c.k.got[0])
				c.k.got = c.k.got[1:]
			}
		}},
		{name: "many failures at once", locked: 1 << 20, ask: func(c *crowded, round int) {
			settle(c, Abandon, "", nil, c.k.got...)
			c.k.got = nil
			if err := c.k.c.SetDeliveryLimit(c.k.c.deliveredCount + uint64(c.stored)); err != nil {
				c.t.Fatal(err)
			}
		}},
		{name: "failures with properties", locked: 2000, ask: func(c *crowded, round int) {
			for range min(300, len(c.k.got)) {
				settle(c, Abandon, "", []message.Change{{Name: "why", Value: codec.String(long)}}, c.k.got[0])
				c.k.got = c.k.got[1:]
			}
		}},
		{name: "a million that expire", ttl: time.Hour, ask: func(c *crowded, round int) {
			if round == 0 {
				c.now = c.now.Add(2 * time.Hour)
			}
		}},
		{name: "and receivers", ttl: time.Hour, locked: 1 << 20, ask: func(c *crowded, round int) {
			if round == 0 {
				c.now = c.now.Add(2 * time.Hour)
			}
			if err := c.k.c.SetDeliveryLimit(1 << 40); err != nil {
				c.t.Fatal(err)
			}
		}},
		{name: "those that expire before a receiver", ttl: time.Hour, ask: func(c *crowded, round int) {
			if round == 0 {
				c.now = c.now.Add(2 * time.Hour)
			}
			if err := c.k.c.SetDeliveryLimit(1 << 40); err != nil {
				c.t.Fatal(err)
			}
		}},
		{name: "locks that end", locked: 1 << 20, ask: func(c *crowded, round int) {
			c.now = c.now.Add(25 * time.Hour)
			if err := c.k.c.SetDeliveryLimit(c.k.c.deliveredCount + uint64(c.stored)); err != nil {
				c.t.Fatal(err)
			}
		}},
		{name: "other classes", ask: func(c *crowded, round int) {
			o := Reclassify{ID: c.id}
			for seq := range queue.SeqNo(c.stored) {
				o.Changes = append(o.Changes, Reclassified{Seq: seq + 1, To: queue.Classification{Level: 3, Key: strings.Repeat("k", 100) + fmt.Sprint(round)}})
				if len(o.Changes) == 100 {
					if err := Post(c.s, o, func(_ ReclassifyReply, err error) { refused(c, err) }); err != nil {
						c.t.Fatal(err)
					}
					o.Changes = nil
				}
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := &crowded{rig: newRig(t, Options{SnapshotAfter: 256 << 10, CacheBytes: 1 << 20}), t: t}
			c.disk.SetSize(4 << 20)
			c.id = c.define("q", queue.Config{LockFor: 24 * time.Hour, Sessions: tt.sessions, MaxFailures: 1000, DeadLetterExpired: true})
			c.fillQueue(tt.sessions, tt.ttl)
			c.check()
			if tt.sessions {
				name := strings.Repeat("s", 100) + "1"
				c.accept(&taker{r: c.rig}, Attachment{ID: c.id}, &name, func(l queue.SessionLock, _ time.Time, err error) {
					if err != nil {
						t.Error(err)
					}
					c.lock = l
				})
				c.rig.settle()
			} else {
				c.k = c.attach(c.id, Main, queue.TakeOptions{})
				if err := c.k.c.SetDeliveryLimit(uint64(min(tt.locked, c.stored))); err != nil {
					t.Fatal(err)
				}
				for range 20 {
					c.rig.settle()
				}
			}
			for round := range 40 {
				tt.ask(c, round)
				for range 5 {
					c.step()
					c.check()
					c.sync()
					c.now = c.now.Add(20 * time.Millisecond)
				}
			}
			if err := Post(c.s, Purge{Queue: QueueID{Entity: c.id}}, func(_ int, err error) {
				if err != nil {
					t.Errorf("purge: %v", err)
				}
			}); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				c.rig.settle()
				c.check()
			}
			if n := len(c.s.stranded); n > 0 || c.s.entities[c.id].parts[Main].stranded > 0 {
				t.Errorf("%d messages have not returned, and there is space", n)
			}
		})
	}
}
