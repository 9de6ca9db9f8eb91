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
//
// An id came at the enqueue time of its message, which is on disk. If a wrong clock was set
// right, that is ahead of the clock: enqueue times never go back while messages wait. Such
// an id counts from when it came by the clock that is right, or, after a restart, from when the
// window is used first.
type DedupWindow struct {
	duration int64                        // zero: off
	at       entries.Table[IDHash, int64] // seen.since of the last of an id
	order    fifo[seen]
	now      int64 // the latest time by the clock; zero before the window is used
	began    int64 // the first of them
}

// seen is an id with the time from which it counts.
type seen struct {
	SeenID
	since int64
}

// maxAhead is how far an id may be ahead of the clock that is right, in nanoseconds.
const maxAhead = int64(time.Minute)

// Configure changes the duration; zero drops all ids. The count of dropped ids is kept:
// it is part of the position of a snapshot in progress.
func (w *DedupWindow) Configure(d time.Duration) {
	w.duration = int64(d)
	if d == 0 {
		dropped := w.order.popped + uint64(w.order.n)
		*w = DedupWindow{now: w.now, began: w.began}
		w.order.popped = dropped
	}
}

// Applies reports whether a message with this id is subject to duplicate detection.
func (w *DedupWindow) Applies(id string) bool { return w.duration > 0 && id != "" }

// tell tells the time by the clock.
func (w *DedupWindow) tell(now int64) {
	w.now = max(w.now, now)
	if w.began == 0 {
		w.began = now
	}
}

// count returns from when an id counts that came at a time.
func (w *DedupWindow) count(since int64) int64 {
	if w.began != 0 && since-w.now > maxAhead {
		return w.began
	}
	return since
}

// Seen reports whether an id came less than the duration before now, by the clock.
func (w *DedupWindow) Seen(id IDHash, now int64) bool {
	w.tell(now)
	since, ok := w.at.Get(id)
	return ok && now < w.count(since)+w.duration
}

// Reserve makes Seen true for id without storing when to drop it. The caller continues
// with Keep or with Cancel. The id comes now, and its message is enqueued at a time.
func (w *DedupWindow) Reserve(id IDHash, in int64) { w.at.Set(id, w.arrival(in)) }

// Keep stores when to drop an id, after Reserve with the same time.
func (w *DedupWindow) Keep(id IDHash, in int64) { w.order.push(seen{SeenID{id, in}, w.arrival(in)}) }

// arrival returns from when an id counts that comes now.
func (w *DedupWindow) arrival(in int64) int64 {
	if in-w.now > maxAhead {
		return w.now
	}
	return in
}

// Cancel undoes Reserve.
func (w *DedupWindow) Cancel(id IDHash) { w.at.Delete(id) }

// Add adds an id that is on disk.
func (w *DedupWindow) Add(s SeenID) {
	w.at.Set(s.ID, s.At)
	w.order.push(seen{s, s.At})
}

// Forget drops up to max ids that have expired at now, by the clock.
func (w *DedupWindow) Forget(now int64, max int) {
	w.tell(now)
	w.Expire(now, max)
}

// Expire drops up to max ids that have expired at a time, which need not be that of the clock.
func (w *DedupWindow) Expire(now int64, max int) {
	for ; max > 0 && w.order.n > 0 && w.count(w.order.at(0).since)+w.duration <= now; max-- {
		s := w.order.pop()
		if since, _ := w.at.Get(s.ID); since == s.since { // not seen again later
			w.at.Delete(s.ID)
		}
	}
}

// Contents returns the ids that are valid at a time, sorted. Those of the future are not
// among them: from when they count is not on disk.
func (w *DedupWindow) Contents(now int64) []SeenID {
	var in []SeenID
	for i := range w.order.n {
		s := w.order.at(i)
		if since, _ := w.at.Get(s.ID); since == s.since && s.At-now <= maxAhead && s.At+w.duration > now {
			in = append(in, s.SeenID)
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
	return w.order.at(int(position - w.order.popped)).SeenID
}

// Deadline returns when Forget should run: a few times in each duration, not once for
// each id.
func (w *DedupWindow) Deadline() int64 {
	switch {
	case w.order.n == 0:
		return entries.Never
	case w.began == 0: // at once, so that ids of the future count from now
		return 0
	}
	return w.count(w.order.at(0).since) + w.duration + w.duration/8
}
