// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/policy"
)

// maxRequests is how many requests the broker remembers. Beyond that the oldest
// is forgotten, and a reply to it is a message like any other.
const maxRequests = 1 << 16

// requests are the messages handed out lately that ask for a reply: what they
// were worth, so that the reply is worth as much. Any consumer can use it without
// knowing: it suffices that the reply goes where the request said and has the
// request's message-id for its correlation-id. It must come from the key to which the
// request was handed out: who has a queue of his own must not say by the requests in it
// how the messages fare that others send elsewhere.
//
// They are not logged: a request whose consumer has not answered before a restart
// is handed out again.
type requests struct {
	seed  maphash.Seed
	known atomic.Bool // there is one

	mu     sync.Mutex
	all    map[requestKey]request // guarded by mu
	oldest []requestKey           // guarded by mu; a ring, in the order they came
	next   int                    // guarded by mu; place of the oldest in a full ring
}

// requestKey is where replies go and a sum of the message-id and of the key that
// answers: both can be long.
type requestKey struct {
	to *catalog.Entity
	id uint64
}

type request struct {
	lent  message.Inherited
	until time.Time // end of the life that its sender gave it; zero is none
}

func newRequests() *requests {
	return &requests{seed: maphash.MakeSeed(), all: make(map[requestKey]request)}
}

func (rs *requests) key(to *catalog.Entity, by, id string) requestKey {
	var h maphash.Hash
	h.SetSeed(rs.seed)
	_, _ = h.WriteString(by) // never fails, nor do the others
	_ = h.WriteByte(0)
	_, _ = h.WriteString(id)
	return requestKey{to, h.Sum64()}
}

func (rs *requests) put(to *catalog.Entity, by, id string, r request) {
	k := rs.key(to, by, id)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.known.Store(true)
	if _, again := rs.all[k]; !again {
		if len(rs.oldest) < maxRequests {
			rs.oldest = append(rs.oldest, k)
		} else {
			delete(rs.all, rs.oldest[rs.next])
			rs.oldest[rs.next] = k
			rs.next = (rs.next + 1) % maxRequests
		}
	}
	rs.all[k] = r
}

func (rs *requests) find(to *catalog.Entity, by, id string) (request, bool) {
	k := rs.key(to, by, id)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r, ok := rs.all[k]
	return r, ok
}

// NoteDelivered says that a consumer of addr gets to see a message; by names its key, as in
// SenderOptions. If the message asks for a reply, the broker remembers what it is worth.
func (b *Broker) NoteDelivered(addr, by string, d *Delivery, m *message.Message) {
	replyTo := m.ReplyTo()
	if replyTo == "" {
		return
	}
	id := m.MessageIDString()
	to, err := b.Writable(replyTo)
	if err != nil || id == "" {
		return // a temporary node, a foreign broker, or nothing at all
	}
	from, _, err := b.Readable(addr)
	if err != nil {
		return
	}
	r := request{lent: message.Inherited{
		Level: uint8(d.Level), Since: d.EnqueuedAt,
		Class: from.Definition().Classifier.Policy.ClassName(uint8(d.Class)),
	}}
	if !d.OrderTime.IsZero() {
		r.lent.Since = d.OrderTime // it is a reply itself
	}
	if catalog.Lifetime(m) > 0 {
		r.until = d.ExpiresAt
	}
	b.requests.put(to, by, id, r)
}

// lend gives a message from outside, if it is a reply, what its request was worth,
// and takes away what its sender has lent himself.
func (b *Broker) lend(n *catalog.Entity, by string, m *message.Message) *message.Message {
	fit := m
	if m.HasInherited() {
		fit = catalog.Edited(fit, message.Edit{Annotations: message.StripInherited()})
	}
	if q, ok := b.answered(n, by, m); ok {
		// What its sender may send is not refused for our additions.
		if lent := catalog.Edited(fit, q.edit(m, b.clock.Now())); int64(lent.Size()) <= n.Definition().MaxMessage() {
			fit = lent
		}
	}
	return fit
}

// answered returns the request that a message answers, if it is to be worth as
// much: that is, if it asks for no priority of its own.
func (b *Broker) answered(n *catalog.Entity, by string, m *message.Message) (request, bool) {
	if !b.requests.known.Load() {
		return request{}, false
	}
	id := m.CorrelationID()
	if id.IsNull() {
		return request{}, false
	}
	if _, asks := policy.RequestedLevel(m); asks {
		return request{}, false
	}
	return b.requests.find(n, by, id.String())
}

// edit says how a reply to q changes. It lives no longer than the request would
// have, unless its sender says how long.
func (q *request) edit(m *message.Message, now time.Time) message.Edit {
	e := message.Edit{Annotations: q.lent.Changes()}
	if !q.until.IsZero() && catalog.Lifetime(m) == 0 {
		e.SetTTL, e.TTL = true, max(q.until.Sub(now), time.Millisecond)
	}
	return e
}
