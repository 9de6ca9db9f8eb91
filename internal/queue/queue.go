// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"iter"
	"time"
)

// Queue is one queue. It belongs to one goroutine.
type Queue struct {
	cfg Config
}

// New returns an empty queue. A token is valid only in the queue that gave it
// and in that queue's epoch: give each life of a queue an epoch of its own.
func New(cfg Config, epoch uint32) *Queue { return &Queue{cfg: cfg} }

// Configure changes the settings and logs them. Messages keep their level, age
// and place; Sessions and IsDead stay as New had them.
func (q *Queue) Configure(now time.Time, cfg Config, out *Effects) {}

// Config returns the settings. Its slices must not be changed.
func (q *Queue) Config() Config { return q.cfg }

// Counts returns how many messages there are in each state.
func (q *Queue) Counts() Counts { return Counts{} }

// Enqueue stores all messages of as, or none and an error, with one record. It
// writes their numbers to seqs, which is as long as as; a duplicate is dropped
// and gets zero. The strings of as are kept only if they are new session ids or
// fair keys.
func (q *Queue) Enqueue(now time.Time, as []Arrival, seqs []SeqNo, out *Effects) error { return nil }

// Take hands out the best ready message that w accepts, locked unless w is
// Forgetful. In a queue of sessions it is the oldest of w.Session. It gives up
// after a bounded number of messages that turn out to have expired; Tick, which
// is due then, removes the rest.
func (q *Queue) Take(now time.Time, w Want, out *Effects) (Delivery, bool) { return Delivery{}, false }

// TakeSeq hands out the deferred or ready message seq: ErrNotFound, ErrLocked,
// ErrReceivePaused, ErrSessionLockLost. Of w only Session and Forgetful count.
func (q *Queue) TakeSeq(now time.Time, seq SeqNo, w Want, out *Effects) (Delivery, error) {
	return Delivery{}, ErrNotFound
}

// HasReady reports cheaply whether Take with w would find something. It may say
// yes although what is ready has expired.
func (q *Queue) HasReady(now time.Time, w Want) bool { return false }

// Renew extends a lock to now plus the lock duration. Inside a session the lock
// is the session's, and Renew only tells until when.
func (q *Queue) Renew(now time.Time, t Token) (time.Time, error) { return time.Time{}, ErrLockLost }

// Complete removes a message for good.
func (q *Queue) Complete(now time.Time, t Token, out *Effects) (Settled, error) {
	return Settled{}, ErrLockLost
}

// Abandon returns a message to its place and counts a failed delivery; at the
// limit the message becomes a dead letter instead. A deferred one stays deferred.
func (q *Queue) Abandon(now time.Time, t Token, out *Effects) (Settled, error) {
	return Settled{}, ErrLockLost
}

// Release returns a message to its place and counts nothing.
func (q *Queue) Release(now time.Time, t Token, out *Effects) (Settled, error) {
	return Settled{}, ErrLockLost
}

// Defer sets a message aside until somebody takes it by its number.
func (q *Queue) Defer(now time.Time, t Token, out *Effects) (Settled, error) {
	return Settled{}, ErrLockLost
}

// Reject makes a message a dead letter. A queue of dead letters answers
// ErrNotAllowed.
func (q *Queue) Reject(now time.Time, t Token, reason, description string, out *Effects) (Settled, error) {
	return Settled{}, ErrLockLost
}

// Rewrite gives a locked message a new body.
func (q *Queue) Rewrite(now time.Time, t Token, body Ref, out *Effects) error { return ErrLockLost }

// Cancel removes a scheduled message; ErrNotFound.
func (q *Queue) Cancel(now time.Time, seq SeqNo, out *Effects) error { return ErrNotFound }

// Remove removes any message that is not locked; ErrNotFound, ErrLocked.
func (q *Queue) Remove(now time.Time, seq SeqNo, out *Effects) error { return ErrNotFound }

// Reclass changes the level, class and fair key of a message in any state. It
// keeps its number and age; a held one returns to its new place.
func (q *Queue) Reclass(now time.Time, seq SeqNo, r Reclass, out *Effects) error { return ErrNotFound }

// Reclass is what a policy newly thinks of a message.
type Reclass struct {
	Level Level
	Class Class
	Key   string
}

// Peek returns up to max messages in all states, by number, the first not below
// from. Expired ones are left out. A session narrows it to that session.
func (q *Queue) Peek(now time.Time, from SeqNo, max int, session *string) []Delivery { return nil }

// Lookup returns one message in any state.
func (q *Queue) Lookup(seq SeqNo) (Delivery, bool) { return Delivery{}, false }

// Purge says what to remove: messages that are not locked.
type Purge struct {
	Before  time.Time // enqueued before; zero is all
	Max     int       // zero is all
	Session *string   // only of this session
}

// Purge removes messages, the lowest numbers first, and returns how many.
func (q *Queue) Purge(now time.Time, p Purge, out *Effects) int { return 0 }

// LockSession locks a session by its id, which need not have messages;
// ErrSessionLocked.
func (q *Queue) LockSession(now time.Time, id string) (SessionLock, time.Time, error) {
	return SessionLock{}, time.Time{}, ErrSessionLocked
}

// LockNextSession locks the free session whose first message ranks best among
// those whose level w accepts.
func (q *Queue) LockNextSession(now time.Time, w Want) (SessionLock, time.Time, bool) {
	return SessionLock{}, time.Time{}, false
}

// RenewSession extends a session lock, and with it the locks on its messages.
func (q *Queue) RenewSession(now time.Time, s SessionLock) (time.Time, error) {
	return time.Time{}, ErrSessionLockLost
}

// HoldsSession reports whether s is still valid.
func (q *Queue) HoldsSession(now time.Time, s SessionLock) bool { return false }

// ReleaseSession gives a session back. Its locked messages return uncounted. A
// lock that is lost already is ignored.
func (q *Queue) ReleaseSession(now time.Time, s SessionLock, out *Effects) {}

// SessionState returns where the state of a session is kept, if it has one.
func (q *Queue) SessionState(id string) (Ref, bool) { return Ref{}, false }

// SetSessionState sets the state of a session, or clears it with the zero Ref.
func (q *Queue) SetSessionState(now time.Time, id string, state Ref, out *Effects) {}

// Sessions returns the ids, sorted, of the sessions that have messages or a
// state; with since not zero, of those whose state changed after it.
func (q *Queue) Sessions(since time.Time) []string { return nil }

// Tick does what is due: locks and lives that end, schedules that begin. It
// does a bounded amount of work and reports whether more is due at now.
func (q *Queue) Tick(now time.Time, out *Effects) (more bool) { return false }

// NextDeadline returns when Tick has work next.
func (q *Queue) NextDeadline() (time.Time, bool) { return time.Time{}, false }

// LevelStat tells about the ready messages of one level or class.
type LevelStat struct {
	Ready  int64
	Oldest time.Time // enqueue time of the oldest
}

// Levels yields the levels that have ready messages, the highest first.
func (q *Queue) Levels() iter.Seq2[Level, LevelStat] {
	return func(func(Level, LevelStat) bool) {}
}

// Classes yields the classes that have ready messages, the lowest number first.
func (q *Queue) Classes() iter.Seq2[Class, LevelStat] {
	return func(func(Class, LevelStat) bool) {}
}

// LevelCount returns how many messages of a level are ready.
func (q *Queue) LevelCount(l Level) int64 { return 0 }

// Hold is a reason why a message cannot be taken now.
type Hold uint8

// What holds a message.
const (
	HeldByNothing Hold = iota
	HeldByLock
	HeldBySchedule
	HeldByDeferral
	HeldByPause
	HeldBySession // its session is locked
	HeldByCap     // its fair key has as much in flight as it may
	HeldByRate    // its fair key was served as often as it may
)

// Position explains where a message stands.
type Position struct {
	Delivery
	Rank  int           // effective level
	Ahead map[Level]int // ready messages that go first, by level
	Held  Hold
	Until time.Time // when Held ends, if that is known
}

// Explain tells what stands between a message and its delivery. It looks at
// every message that may be ahead.
func (q *Queue) Explain(now time.Time, seq SeqNo) (Position, error) { return Position{}, ErrNotFound }

// Cursor is how far a snapshot has come. The zero value is the beginning.
type Cursor struct {
	phase uint8
	next  uint64
	high  SeqNo
}

// Snapshot writes the next part of a snapshot to out: the first step the
// settings and counters, the following ones up to max items each, the last one
// an end. Commands may run between the steps. move may give a body that the
// owner wants elsewhere a new place; nil moves nothing.
func (q *Queue) Snapshot(c Cursor, max int, move func(Ref) (Ref, bool), out *Effects) (next Cursor, done bool) {
	return c, true
}

// Replay applies a record that this queue, in an earlier life, wrote. A queue
// may begin with a snapshot, or with its very first record; a snapshot that
// comes later only moves bodies. After an error the queue must be dropped.
func (q *Queue) Replay(rec []byte, out *Effects) error { return nil }

// Whole reports whether everything replayed so far makes a queue: false inside
// a snapshot that has not ended yet.
func (q *Queue) Whole() bool { return true }
