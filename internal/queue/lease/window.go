// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/queue/entries"
)

// IDHash is the hash of a message id. It is on disk: the first half of SHA-256, because
// senders choose their ids and must not be able to make two collide.
type IDHash [16]byte

func HashID(id string) IDHash {
	sum := sha256.Sum256([]byte(id))
	return IDHash(sum[:16])
}

// SeenID is a message id and when it arrived.
type SeenID struct {
	ID IDHash
	At int64
}

func (s SeenID) Compare(t SeenID) int {
	return cmp.Or(cmp.Compare(s.At, t.At), bytes.Compare(s.ID[:], t.ID[:]))
}

// DedupWindow has the message ids of the last duration. It drops ids late rather than
// early; Seen compares the time.
type DedupWindow struct {
	duration int64 // zero: off
	at       entries.Table[IDHash, int64]
	order    fifo[SeenID]
	future   int // of the oldest ids, those that are known to be of the future
}

// maxAhead is how far an id may be ahead of the clock that is right, in nanoseconds.
const maxAhead = int64(time.Minute)

// Configure changes the duration; zero drops all ids. The count of dropped ids is kept:
// it is part of the position of a snapshot in progress.
func (w *DedupWindow) Configure(d time.Duration) {
	w.duration = int64(d)
	if d == 0 {
		dropped := w.order.popped + uint64(w.order.n)
		*w = DedupWindow{}
		w.order.popped = dropped
	}
}

// Applies reports whether a message with this id is subject to duplicate detection.
func (w *DedupWindow) Applies(id string) bool { return w.duration > 0 && id != "" }

func (w *DedupWindow) Seen(id IDHash, now int64) bool {
	at, ok := w.at.Get(id)
	return ok && now < at+w.duration
}

// Reserve makes Seen true for id without storing when to drop it. The caller continues
// with Keep or with Cancel.
func (w *DedupWindow) Reserve(id IDHash, now int64) {
	w.at.Set(id, now)
}

func (w *DedupWindow) Keep(id IDHash, now int64) { w.order.push(SeenID{id, now}) }
func (w *DedupWindow) Cancel(id IDHash)          { w.at.Delete(id) }

// Add is Reserve and Keep.
func (w *DedupWindow) Add(s SeenID) {
	w.Reserve(s.ID, s.At)
	w.Keep(s.ID, s.At)
}

// Forget drops up to max ids that have expired.
func (w *DedupWindow) Forget(now int64, max int) {
	for ; max > 0 && w.order.n > 0 && w.over(now, max); max-- {
		s := w.order.pop()
		if at, _ := w.at.Get(s.ID); at == s.At { // not seen again later
			w.at.Delete(s.ID)
		}
		if w.future > 0 {
			w.future--
		}
	}
}

// over reports whether the oldest id has expired. One of the future came while the clock was
// wrong: it has expired with the first behind it that is not. Up to most ids are looked at.
func (w *DedupWindow) over(now int64, most int) bool {
	if w.order.at(0).At-now <= maxAhead {
		return w.order.at(0).At+w.duration <= now
	}
	for ; w.future < w.order.n && w.order.at(w.future).At-now > maxAhead; w.future++ {
		if most--; most < 0 {
			return false
		}
	}
	return w.future < w.order.n && w.order.at(w.future).At+w.duration <= now
}

// Contents returns the ids that are valid at a time, sorted.
func (w *DedupWindow) Contents(now int64) []SeenID {
	var in []SeenID
	for i := range w.order.n {
		s := *w.order.at(i)
		if at, _ := w.at.Get(s.ID); at == s.At && s.At+w.duration > now {
			in = append(in, s)
		}
	}
	slices.SortFunc(in, SeenID.Compare)
	return in
}

// IDCost is about what an id takes until it is dropped.
const IDCost = 72

// Memory returns how many bytes the ids take.
func (w *DedupWindow) Memory() int64 { return w.at.Memory() + w.order.memory() }

// Off reports whether there is no duplicate detection.
func (w *DedupWindow) Off() bool { return w.duration == 0 }

// Bounds returns the positions of the first id and of the next one to be added. A
// position belongs to one id and is never reused.
func (w *DedupWindow) Bounds() (first, end uint64) {
	return w.order.popped, w.order.popped + uint64(w.order.n)
}

// IdAt returns the id at a position between the bounds.
func (w *DedupWindow) IdAt(position uint64) SeenID {
	return *w.order.at(int(position - w.order.popped))
}

// Deadline returns when Forget should run: a few times in each duration, not once for
// each id.
func (w *DedupWindow) Deadline() int64 {
	if w.order.n == 0 {
		return entries.Never
	}
	return w.order.at(0).At + w.duration + w.duration/8
}
