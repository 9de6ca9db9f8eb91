// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"iter"
	"time"
)

// Last returns the highest sequence number assigned so far.
func (q *Queue) Last() SeqNo { return q.core.Index.Entries.Last }

// Lookup returns one message in any state.
func (q *Queue) Lookup(seq SeqNo) (Delivery, bool) {
	e := q.core.Index.Entries.Get(seq)
	if e == nil {
		return Delivery{}, false
	}
	return q.delivery(seq, e), true
}

// PeekNext returns the message that Take would deliver next.
func (q *Queue) PeekNext(now time.Time, w TakeOptions) (Delivery, bool) {
	at := q.core.At(now)
	if q.core.Config.ReceivePaused {
		return Delivery{}, false
	}
	k, e, ok := q.best(at, w)
	if !ok {
		return Delivery{}, false
	}
	return q.delivery(k.Seq, e), true
}

// Precedes reports whether a ready message would be delivered before the one locked by
// t, if that were released. It is false if the token is not valid.
func (q *Queue) Precedes(now time.Time, ready SeqNo, t Token) bool {
	at := q.core.At(now)
	locked, err := q.lockedEntry(t, at)
	e := q.core.Index.Entries.Get(ready)
	if err != nil || e == nil {
		return false
	}
	return q.core.Index.ScoresBefore(ready, e, t.Seq, locked, at)
}

// Started returns the fair keys that were started and are not finished, in the order
// in which they were started.
func (q *Queue) Started() []string {
	var names []string
	for _, k := range q.core.Index.StartedKeys() {
		names = append(names, k.Name)
	}
	return names
}

// LockValid reports whether a token is valid.
func (q *Queue) LockValid(now time.Time, t Token) bool {
	_, err := q.lockedEntry(t, q.core.At(now))
	return err == nil
}

// LockedLevel returns the level of the message that a token has locked, if it is valid.
func (q *Queue) LockedLevel(now time.Time, t Token) (Level, bool) {
	e, err := q.lockedEntry(t, q.core.At(now))
	if err != nil {
		return 0, false
	}
	return e.Level, true
}

// Survey continues a survey, which begins as its zero value. It visits up to most fair
// keys and reports whether it is done.
func (q *Queue) Survey(s *Survey, most int) (done bool) { return q.core.Index.Survey(s, most) }

// LevelCount returns how many messages of a level are ready.
func (q *Queue) LevelCount(l Level) int64 { return q.core.Index.LevelCount(l) }

// ReadyFrom returns how many messages are ready at a level or above it, and their
// bytes.
func (q *Queue) ReadyFrom(l Level) (count, bytes int64) { return q.core.Index.ReadyFrom(l) }

// ReadyOf returns how many messages of a class are ready, and their bytes.
func (q *Queue) ReadyOf(c Class) (count, bytes int64) { return q.core.Index.ReadyOf(c) }

// OldestOf yields the ready messages of a class in sequence order, as far as it finds
// them by visiting a bounded number of others. The next call continues where this one
// found the first, so that repeated calls find all of them.
func (q *Queue) OldestOf(c Class) iter.Seq2[SeqNo, Ref] { return q.core.Index.OldestOf(c) }

// Classes yields the classes that have ready messages in ascending order. Oldest is
// the enqueue time of the lowest sequence number; it is zero for a class whose oldest
// message SeekOldest has not found yet.
func (q *Queue) Classes() iter.Seq2[Class, LevelStat] { return q.core.Index.ReadyClasses() }

// SeekOldest searches for the oldest message of each class. It continues where it was,
// visits up to *most messages, which it subtracts, and reports whether it has found
// all.
func (q *Queue) SeekOldest(most *int) (found bool) { return q.core.Index.SeekOldest(most) }
