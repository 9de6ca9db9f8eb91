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

// maxRequests is how many requests the broker remembers. Beyond that the oldest is
// dropped, and a reply to it inherits nothing.
const maxRequests = 1 << 16

// requests are the recently delivered messages that ask for a reply, with their
// priorities, which replies inherit. A consumer needs to do nothing special: it suffices
// that the reply goes where the request said and has the request's message-id as its
// correlation-id. It must come from the key to which the request was delivered: otherwise
// the owner of one queue could raise the priority of messages that others send elsewhere.
//
// They are not logged: a request that was not answered before a restart is redelivered.
type requests struct {
	seed  maphash.Seed
	known atomic.Bool // there is one

	mu     sync.Mutex
	all    map[requestKey]request // guarded by mu
	oldest []requestKey           // guarded by mu; a ring, in the order they came
	next   int                    // guarded by mu; index of the oldest in a full ring
}

// requestKey is where replies go and a hash of the message-id and of the key that
// answers: both can be long.
type requestKey struct {
	to *catalog.Entity
	id uint64
}

type request struct {
	inherited message.Inherited
	until     time.Time // its expiry, if its sender set one; zero is none
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

// NoteDelivered says that a message is delivered to a consumer of addr; by is its key, as
// in SenderOptions. If the message asks for a reply, the broker remembers its priority.
func (b *Broker) NoteDelivered(addr, by string, d *Delivery, m *message.Message) {
	replyTo := m.ReplyTo()
	if replyTo == "" {
		return
	}
	id := m.MessageIDString()
	to, err := b.Writable(replyTo)
	if err != nil || id == "" {
		return // a dynamic node, another broker, or none
	}
	from, _, err := b.Readable(addr)
	if err != nil {
		return
	}
	r := request{inherited: message.Inherited{
		Level: uint8(d.Level), Since: d.EnqueuedAt,
		Class: from.Definition().Classifier.Policy.ClassName(uint8(d.Class)),
	}}
	if !d.OrderTime.IsZero() {
		r.inherited.Since = d.OrderTime // it is a reply itself
	}
	if catalog.Lifetime(m) > 0 {
		r.until = d.ExpiresAt
	}
	b.requests.put(to, by, id, r)
}

// inheritPriority adds to a message from outside, if it is a reply, the priority of its
// request.
func (b *Broker) inheritPriority(n *catalog.Entity, by string, m *message.Message) *message.Message {
	if q, ok := b.answered(n, by, m); ok {
		// A message within the limit is not rejected for our additions.
		if inherited := catalog.Edited(m, q.edit(m, b.clock.Now())); int64(inherited.Size()) <= n.Definition().MaxMessage() {
			return inherited
		}
	}
	return m
}

// answered returns the request that a message answers, if the message has no priority of
// its own and inherits that of the request.
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

// edit returns how a reply to q changes. It expires with the request, unless its sender
// has set a time to live.
func (q *request) edit(m *message.Message, now time.Time) message.Edit {
	e := message.Edit{Annotations: q.inherited.Changes()}
	if !q.until.IsZero() && catalog.Lifetime(m) == 0 {
		e.SetTTL, e.TTL = true, max(q.until.Sub(now), time.Millisecond)
	}
	return e
}
