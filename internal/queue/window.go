// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
	"time"
)

// digest stands for a message id. It is on disk: the first half of SHA-256,
// because senders choose their ids and must not be able to make two collide.
type idHash [16]byte

func hashID(id string) idHash {
	sum := sha256.Sum256([]byte(id))
	return idHash(sum[:16])
}

// sighting is a message id and when it came.
type seenID struct {
	id idHash
	at int64
}

func (s seenID) compare(t seenID) int {
	return cmp.Or(cmp.Compare(s.at, t.at), bytes.Compare(s.id[:], t.id[:]))
}

// window remembers the message ids of a time. It forgets late rather than
// early; seen decides by the clock.
type dedupWindow struct {
	duration int64 // zero: off
	at       map[idHash]int64
	order    fifo[seenID]
}

// configure changes the length of the window; zero forgets everything. How many
// ids have gone is kept: a snapshot in progress counts its way by it.
func (w *dedupWindow) configure(d time.Duration) {
	w.duration = int64(d)
	if d == 0 {
		gone := w.order.popped + uint64(w.order.n)
		*w = dedupWindow{}
		w.order.popped = gone
	}
}

// applies reports whether a message with this id is subject to the window.
func (w *dedupWindow) applies(id string) bool { return w.duration > 0 && id != "" }

func (w *dedupWindow) seen(id idHash, now int64) bool {
	at, ok := w.at[id]
	return ok && now < at+w.duration
}

// reserve makes seen true for id without remembering when to forget it. The
// caller goes on with keep or with cancel.
func (w *dedupWindow) reserve(id idHash, now int64) {
	if w.at == nil {
		w.at = make(map[idHash]int64)
	}
	w.at[id] = now
}

func (w *dedupWindow) keep(id idHash, now int64) { w.order.push(seenID{id, now}) }
func (w *dedupWindow) cancel(id idHash)          { delete(w.at, id) }

// add is reserve and keep.
func (w *dedupWindow) add(s seenID) {
	w.reserve(s.id, s.at)
	w.keep(s.id, s.at)
}

// forget drops up to max ids that are out of the window.
func (w *dedupWindow) forget(now int64, max int) {
	for ; max > 0 && w.order.n > 0 && w.order.at(0).at+w.duration <= now; max-- {
		s := w.order.pop()
		if w.at[s.id] == s.at { // not seen again later
			delete(w.at, s.id)
		}
	}
}

// within returns what is in the window at a time, sorted.
func (w *dedupWindow) contents(now int64) []seenID {
	var in []seenID
	for i := range w.order.n {
		if s := *w.order.at(i); w.at[s.id] == s.at && s.at+w.duration > now {
			in = append(in, s)
		}
	}
	slices.SortFunc(in, seenID.compare)
	return in
}

// deadline returns when forgetting is worth waking up for: a few times in each
// window, not once for each id.
func (w *dedupWindow) deadline() int64 {
	if w.order.n == 0 {
		return never
	}
	return w.order.at(0).at + w.duration + w.duration/8
}
