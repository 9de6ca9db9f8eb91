// SPDX-License-Identifier: Apache-2.0

package recall

import (
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// Requests are the recalls of one queue, by the ready message for which each was made.
// C names a consumer.
type Requests[C comparable] struct {
	bySeq map[queue.SeqNo]*Request[C]
}

// Request is the recall of one delivery.
type Request[C comparable] struct {
	Token queue.Token
	From  C
	// Until is when the lock ended at the time of the recall. The consumer may renew the
	// lock, or give no credit; it is not waited for any longer.
	Until time.Time
	// Released says that the delivery was released: the consumer is about to have
	// credit for another.
	Released bool
}

// Get returns the request for a ready message, nil if there is none.
func (r *Requests[C]) Get(seq queue.SeqNo) *Request[C] { return r.bySeq[seq] }

// Set adds the request for a ready message. Those for messages that are not ready any
// more are removed.
func (r *Requests[C]) Set(seq queue.SeqNo, req Request[C], ready func(queue.SeqNo) bool) {
	for other := range r.bySeq {
		if !ready(other) {
			delete(r.bySeq, other)
		}
	}
	if r.bySeq == nil {
		r.bySeq = make(map[queue.SeqNo]*Request[C])
	}
	r.bySeq[seq] = &req
}

// Released notes that a message was released.
func (r *Requests[C]) Released(t queue.Token) {
	for _, req := range r.bySeq {
		if req.Token == t {
			req.Released = true
		}
	}
}

// Decline removes the requests to a consumer for these tokens, and reports whether there
// were any.
func (r *Requests[C]) Decline(from C, tokens []queue.Token) (found bool) {
	for seq, req := range r.bySeq {
		if req.From == from && slices.Contains(tokens, req.Token) {
			delete(r.bySeq, seq)
			found = true
		}
	}
	return found
}
