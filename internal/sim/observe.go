// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// observer is called by the shard for every event of one queue, when it
// happens, and does the same in the model.
type observer struct {
	h *shardSim
	place
}

var (
	_ queueserver.TransitObserver = (*observer)(nil)
	_ queueserver.SessionObserver = (*observer)(nil)
)

func (o *observer) model() *modelQueue { return o.h.queue(o.place) }

// Admit implements queueserver.Observer.
func (o *observer) Admit(now time.Time, q *queue.Queue, as []queue.Arrival) ([]queue.SeqNo, error) {
	o.model().catchUp(q)
	if o.part != queueserver.Main {
		return nil, nil
	}
	return o.h.sending.admit(o, now, q, as)
}

// AdmitCanceled implements queueserver.Observer.
func (o *observer) AdmitCanceled(time.Time, []queue.Arrival) {
	d := o.h.entities[o.id].admitter
	d.real.Refund(d.asks)
}

// Arrived implements queueserver.Observer.
func (o *observer) Arrived(_ time.Time, as []queue.Arrival) { o.h.sending.arrived(o, as) }

// taking identifies a delivery: a token is never used twice in one process, and
// a message that is received and deleted is delivered once.
type taking struct {
	place
	seq   queue.SeqNo
	nonce uint64
}

// take is a message that the observer saw leave.
type take struct {
	m       *modelMessage
	body    *message.Message
	version int  // that the delivery will report to its consumer
	durable bool // its lock is
	settled bool // before it was delivered: its consumer had its token from a recall
}

// Delivered implements queueserver.Observer: the choice is checked here, or was when
// the delivery became pending.
func (o *observer) Delivered(now time.Time, d *queue.Delivery) {
	h, q := o.h, o.model()
	h.follow(o.place)
	h.w.event("take %d %v %d", h.number, o.place, d.Seq)
	h.w.result.Takes++
	m := h.held[o.place][d.Seq]
	starts := false // what was held started its key then, by the order of then
	if m == nil {
		m = o.chosen(now, d)
		starts = q.hand(m)
	}
	delete(h.held[o.place], d.Seq)
	t := take{m: m, body: m.body, version: m.changed}
	if starts {
		t.version = h.version()
	}
	if d.Token == (queue.Token{}) {
		t.version = h.version()
		q.remove(m)
	} else {
		o.lock(now, m, d)
		if t.durable = m.durable; m.durable { // its lock is part of what the consumer gets
			t.version = h.version()
		}
		if !d.LockedUntil.Equal(m.until) && !q.cfg.Sessions || q.cfg.Sessions && !d.LockedUntil.Equal(q.held[m.session].until) {
			h.w.failf("%v: message %d is locked until %v, want %v", o.place, d.Seq, d.LockedUntil, m.until)
		}
	}
	h.taken[taking{o.place, d.Seq, d.Token.Nonce}] = t
}

// Held implements queueserver.TransitObserver: the message is chosen, and is
// delivered when its body was read. No lock time passes meanwhile.
func (o *observer) Held(now time.Time, d *queue.Delivery) {
	h, q := o.h, o.model()
	h.follow(o.place)
	h.w.event("hold %d %v %d", h.number, o.place, d.Seq)
	m := o.chosen(now, d)
	q.hand(m)
	o.lock(now, m, d)
	m.until = now.AddDate(100, 0, 0)
	if h.held[o.place] == nil {
		h.held[o.place] = make(map[queue.SeqNo]*modelMessage)
	}
	h.held[o.place][d.Seq] = m
}

// Returned implements queueserver.TransitObserver: no client has seen the message, so
// it is as it was before.
func (o *observer) Returned(_ time.Time, d *queue.Delivery) {
	h, q := o.h, o.model()
	h.w.event("return %d %v %d", h.number, o.place, d.Seq)
	h.w.result.Returns++
	key := taking{o.place, d.Seq, d.Token.Nonce}
	if h.spared[key] {
		delete(h.spared, key)
		return
	}
	if m := h.held[o.place][d.Seq]; m != nil {
		delete(h.held[o.place], d.Seq)
		q.release(m, h.version())
		return
	}
	t, ok := h.taken[key]
	if !ok {
		h.w.failf("%v: message %d returned, but it was not taken or it was delivered", o.place, d.Seq)
	}
	delete(h.taken, key)
	if d.Token == (queue.Token{}) {
		t.m.changed = h.version()
		q.putBack(t.m)
		return
	}
	q.release(t.m, h.version())
}

// chosen checks that a chosen message is the one that is due.
func (o *observer) chosen(now time.Time, d *queue.Delivery) *modelMessage {
	h, q := o.h, o.model()
	m := q.find(d.Seq)
	switch {
	case m == nil:
		h.w.failf("%v: message %d was delivered and does not exist", o.place, d.Seq)
	case m.state != queue.Ready:
		h.w.failf("%v: message %d was delivered and is %v", o.place, d.Seq, m.state)
	case q.cfg.ReceivePaused:
		h.w.failf("%v: message %d was delivered while receiving is disabled", o.place, d.Seq)
	case m.expired(now):
		h.w.failf("%v: message %d was delivered after it expired", o.place, d.Seq)
	}
	may, toAny := false, true
	for _, c := range h.consumers {
		if c.place == o.place && c.may(now, q, m) {
			may, toAny = true, toAny && !c.ranged()
		}
	}
	if !may {
		h.w.failf("%v: message %d at level %d was delivered and is not the next of any list\n%s", o.place, m.seq, m.level, q.why(now, m))
	}
	if !q.cfg.Sessions { // inside a session there are no turns
		if err := q.served(now, m, toAny); err != nil {
			h.w.failf("%v: message %d: %v", o.place, m.seq, err)
		}
	}
	return m
}

// lock records that a message is locked, with a token that was never used
// before.
func (o *observer) lock(now time.Time, m *modelMessage, d *queue.Delivery) {
	h, q := o.h, o.model()
	q.change()
	m.state, m.nonce, m.until = queue.Locked, d.Token.Nonce, now.Add(q.cfg.LockFor)
	m.durable, m.logged = h.durable(o.place, d.Token), m.until
	key := taking{o.place, d.Seq, d.Token.Nonce}
	if h.given[key] {
		h.w.failf("%v: the token of message %d was used before, perhaps in an earlier process", o.place, d.Seq)
	}
	h.given[key] = true
}

// Settled implements queueserver.Observer.
func (o *observer) Settled(now time.Time, v queueserver.Disposition, s queue.Settled) {
	h, q := o.h, o.model()
	m := q.find(s.Seq)
	if m == nil || m.state != queue.Locked {
		h.w.failf("%v: message %d was settled and is not locked", o.place, s.Seq)
	}
	h.w.event("settle %d %v %d %d", h.number, o.place, s.Seq, v)
	if key := (taking{o.place, s.Seq, m.nonce}); m.nonce != 0 {
		if t, ok := h.taken[key]; ok {
			t.settled = true
			h.taken[key] = t
		}
	}
	by := h.edit(taking{o.place, s.Seq, m.nonce}, q, m, s.Body)
	switch v {
	case queueserver.Complete:
		q.remove(m)
	case queueserver.Abandon:
		q.retry(m, now.Add(by.after), h.version())
		if m.state == queue.Retrying {
			h.w.result.Retries++
		}
	case queueserver.Release:
		q.release(m, h.version())
	case queueserver.Defer:
		m.deferred, m.changed = true, h.version()
		q.fail(m, h.version())
	case queueserver.Reject:
		q.die(m, "because")
	}
}

// DeadLettered implements queueserver.Observer: the message must be in the dead-letter queue
// of the same entity, with its reason.
func (o *observer) DeadLettered(now time.Time, d *queue.DeadLetter) {
	h, q := o.h, o.model()
	i := slices.IndexFunc(q.dead, func(x death) bool { return x.m.seq == d.Seq })
	if i < 0 {
		m := q.find(d.Seq)
		if m == nil || !m.expirable(now) || !q.cfg.DeadLetterExpired {
			h.w.failf("%v: message %d became a dead letter: %s", o.place, d.Seq, d.Reason)
		}
		q.die(m, queue.ReasonExpired)
		i = len(q.dead) - 1
	}
	x := q.dead[i]
	q.dead = slices.Delete(q.dead, i, i+1)
	if d.Reason != x.reason {
		h.w.failf("%v: message %d was dead-lettered for %q, want %q", o.place, d.Seq, d.Reason, x.reason)
	}
	h.w.event("died %d %v %d", h.number, o.place, d.Seq)
	dead := *x.m
	dead.state, dead.deferred, dead.nonce, dead.life = queue.Ready, false, 0, 0
	dead.durable, dead.notBefore = false, time.Time{}
	dead.saved, dead.savedSize = nil, 0 // it ends with the message
	dead.changed = h.version()
	dead.explain(d.Reason, d.Description)
	h.queue(place{o.id, queueserver.DeadLetter}).add(&dead)
}

// edited returns a message with properties merged into it.
func edited(m *message.Message, set []message.Change) *message.Message {
	out, err := message.Parse(m.Edit(message.Edit{Properties: set}))
	if err != nil {
		panic(err)
	}
	return out
}

// Expired implements queueserver.Observer.
func (o *observer) Expired(now time.Time, e queue.Expired) {
	q := o.model()
	if m := q.find(e.Seq); m != nil && (!m.expirable(now) || q.cfg.DeadLetterExpired && !q.cfg.DeadLetterQueue) {
		o.h.w.failf("%v: message %d was removed as expired", o.place, e.Seq)
	}
}
