// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// consumer is a client that receives messages, and its sink.
type consumer struct {
	h *shardSim
	place
	consumer queueserver.ConsumerID // zero until it is attached
	want     queue.TakeOptions

	delivered uint64
	limit     uint64 // as the shard knows it
	most      uint64 // highest limit it ever had
	draining  bool   // requested, and not served since
	drains    int    // served, and not notified yet
	void      bool   // nothing was allowed since the last drain was served
	idle      bool   // notified of the last drain, and no further credit since
	nonce     uint64 // of the latest delivery
	over      bool
	ending    bool // over, and to be notified of it
	granted   int  // version in which its session was granted
	gives     bool // releases what is recalled
}

var _ queueserver.Sink = (*consumer)(nil)

// may reports whether m may be the next delivery to this consumer.
func (c *consumer) may(now time.Time, q *modelQueue, m *modelMessage) bool {
	if c.over {
		return false
	}
	if q.cfg.Sessions {
		l := c.want.Session
		return l.Nonce != 0 && l.ID == m.session && q.held[l.ID].nonce == l.Nonce && slices.Contains(q.first(now, l.ID), m)
	}
	if q.paced() && !c.h.ticked {
		// A key whose rate allows more by now is made eligible by Tick, or a little
		// earlier.
		return c.accepts(m) && q.eligible(now, m.key)
	}
	return slices.Contains(q.choices(now, c.accepts), m)
}

func (c *consumer) accepts(m *modelMessage) bool {
	return m.level >= c.want.MinLevel && (c.want.MaxLevel == 0 && !c.want.HasMaxLevel || m.level <= c.want.MaxLevel)
}

// ranged reports whether the consumer wants only some levels.
func (c *consumer) ranged() bool {
	return c.want.MinLevel > 0 || c.want.MaxLevel > 0 || c.want.HasMaxLevel
}

// Deliver implements queueserver.Sink. A client may act upon everything that is
// delivered here: no crash may undo it.
func (c *consumer) Deliver(ds []queueserver.Delivery) {
	w := c.h.w
	if c.over || c.idle {
		w.failf("%v: a consumer got %d messages when it was over or drained", c.place, len(ds))
	}
	for _, d := range ds {
		w.event("deliver %d %v %d", c.h.number, c.place, d.Seq)
		key := taking{c.place, d.Seq, d.Token.Nonce}
		t, ok := c.h.taken[key]
		if !ok {
			w.failf("%v: message %d was delivered twice, or never taken", c.place, d.Seq)
		}
		delete(c.h.taken, key)
		if asked := c.want.DurableLock && c.want.Session.Nonce == 0 && d.Token.Nonce != 0; t.durable && !asked || asked && !t.durable && !w.full {
			w.failf("%v: the lock of message %d is durable: %t, asked for: %t", c.place, d.Seq, t.durable, asked)
		}
		if d.Token == (queue.Token{}) && !d.Loaded() {
			w.failf("%v: message %d was removed, and its receiver has to read it", c.place, d.Seq)
		}
		if d.Token.Nonce != 0 && d.Token.Nonce <= c.nonce {
			w.failf("%v: message %d was delivered out of order", c.place, d.Seq)
		}
		c.nonce = max(c.nonce, d.Token.Nonce)
		if c.delivered++; c.delivered > c.most {
			w.failf("%v: %d messages for a consumer that may have %d", c.place, c.delivered, c.most)
		}
		c.h.noteReported(t.version)
		c.h.unread = append(c.h.unread, unread{c.place, d, t.body, t.m})
		if c.gives && !c.want.ReceiveAndDelete {
			c.h.recalls.outstanding[key] = c
		}
		if d.Token != (queue.Token{}) {
			c.h.stale = append(c.h.stale, token{c.place, d.Token, c.consumer})
		}
	}
}

// Drained implements queueserver.Sink.
func (c *consumer) Drained() {
	c.h.w.event("drained %d %v", c.h.number, c.place)
	if c.over {
		c.h.w.failf("%v: a consumer was drained when it was over", c.place)
	}
	c.drain()
	if c.drains--; c.drains == 0 && c.void {
		c.idle, c.limit = true, c.delivered
	}
}

// drain records that the shard has drained the consumer.
func (c *consumer) drain() {
	if c.draining {
		c.draining, c.void = false, true
		c.drains++
	}
}

// Ended implements queueserver.Sink.
func (c *consumer) Ended(err error) {
	c.h.w.event("ended %d %v %v", c.h.number, c.place, plain(err))
	if c.over && !c.ending {
		c.h.w.failf("%v: a consumer ended twice: %v", c.place, err)
	}
	c.over, c.ending = true, false
}

// unread is a delivery whose body its client has not read yet.
type unread struct {
	place
	d    queueserver.Delivery
	want *message.Message
	m    *modelMessage
}

// read reads a body, which may have been moved since it was delivered: then the
// shard is asked, and has to be stepped for its answer.
func (h *shardSim) read(u unread) {
	type answer struct {
		m   *message.Message
		err error
	}
	gone := func(ref queue.Ref) bool {
		_, err := journal.ReadOne(h.w.ctx, h.w.wal, journal.Position(ref.At), nil)
		return ref != queue.Ref{} && errors.Is(err, journal.ErrFreed)
	}
	if !gone(u.d.Body) && !gone(u.d.Reason) && !gone(u.d.Saved) {
		m, err := u.d.Message()
		h.check(u, m, err)
		return
	}
	lookups := h.s.Lookups()
	got := make(chan answer, 1)
	go func() { // ends with the answer, which is waited for below
		m, err := u.d.Message()
		got <- answer{m, err}
	}()
	var a answer
	for {
		select {
		case a = <-got:
		default:
			if n := h.s.Lookups(); n > lookups { // it may have been moved again
				lookups = n
				h.step()
			}
			runtime.Gosched()
			if h.w.broken != nil {
				return // no answer will arrive, as after a crash
			}
			continue
		}
		break
	}
	h.check(u, a.m, a.err)
}

// check compares a body that was read with the one that was sent.
func (h *shardSim) check(u unread, got *message.Message, err error) {
	h.w.event("read %d %v %d %v", h.number, u.place, u.d.Seq, err)
	if err != nil {
		q := h.queue(u.place)
		if errors.Is(err, queue.ErrNotFound) && u.d.Token != (queue.Token{}) && (q == nil || q.find(u.d.Seq) == nil) {
			return // settled meanwhile
		}
		h.w.failf("%v: read message %d: %v", u.place, u.d.Seq, err)
	}
	if bytes.Equal(got.Bytes(), u.want.Bytes()) {
		return
	}
	if slices.Contains(u.m.sums, sha256.Sum256(got.Bytes())) {
		return // another consumer received it meanwhile, and changed it
	}
	h.w.failf("%v: message %d has another body than was sent", u.place, u.d.Seq)
}
