// SPDX-License-Identifier: Apache-2.0

package recall

import (
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// Requests are the recalls of one queue, by the ready message for which each was made.
// C names a consumer.
type Requests[C comparable] struct {
	bySeq   map[queue.SeqNo]*Request[C]
	byToken map[queue.Token]queue.SeqNo // where a token is in bySeq
	pruneAt int                         // length at which those of messages that are not ready are removed
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
// more are removed, now and then if they are many.
func (r *Requests[C]) Set(seq queue.SeqNo, req Request[C], ready func(queue.SeqNo) bool) {
	if n := len(r.bySeq); n <= minPrune || n >= r.pruneAt {
		for other := range r.bySeq {
			if !ready(other) {
				r.remove(other)
			}
		}
		r.pruneAt = 2 * len(r.bySeq)
	}
	if r.bySeq == nil {
		r.bySeq, r.byToken = make(map[queue.SeqNo]*Request[C]), make(map[queue.Token]queue.SeqNo)
	}
	r.remove(seq)
	r.bySeq[seq] = &req
	r.byToken[req.Token] = seq
}

func (r *Requests[C]) remove(seq queue.SeqNo) {
	if req := r.bySeq[seq]; req != nil {
		delete(r.bySeq, seq)
		delete(r.byToken, req.Token)
	}
}

// Released notes that a message was released.
func (r *Requests[C]) Released(t queue.Token) {
	if seq, ok := r.byToken[t]; ok {
		r.bySeq[seq].Released = true
	}
}

// Decline removes the requests to a consumer for these tokens, and reports whether there
// were any.
func (r *Requests[C]) Decline(from C, tokens []queue.Token) (found bool) {
	for _, t := range tokens {
		if seq, ok := r.byToken[t]; ok && r.bySeq[seq].From == from {
			r.remove(seq)
			found = true
		}
	}
	return found
}
