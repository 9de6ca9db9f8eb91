// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// tolerance is how a replay goes on without records that a repair has dropped.
type tolerance struct {
	on bool
	// uncertain says that numbers may have been assigned in records that are missing. An
	// activation does not say which number it assigns, so it cannot be known until a
	// record has the highest number again.
	uncertain bool
	// unbounded says that the header of the snapshot is missing, so that high is not
	// known.
	unbounded bool
	missing   int
}

// lostNumbers is more messages than can have come in records that are lost: of that number they
// would take a quarter of a terabyte. So many numbers are left out where it is not known how
// many were given.
const lostNumbers = 1 << 32

// Tolerate implements [machine.Tolerant].
func (q *Core) Tolerate() { q.restore.tolerance.on = true }

// Lost implements [machine.Tolerant].
func (q *Core) Lost() { q.restore.tolerance.on, q.restore.tolerance.uncertain = true, true }

// Missing implements [machine.Tolerant].
func (q *Core) Missing() int { return q.restore.tolerance.missing }

// EndReplay implements [machine.Tolerant]. Where numbers may have been given that no record
// shows, as those of the end of the log are lost, they are left out: with the number of a
// message that is lost, somebody could cancel or fetch another one.
func (q *Core) EndReplay() {
	t := &q.restore.tolerance
	if t.on {
		q.endSnapshot()
	}
	if t.uncertain {
		q.Index.Entries.Last = min(q.Index.Entries.Last+lostNumbers, entries.Never-1)
	}
}

// lacks notes that so many messages are missing. Numbers that were left out are none.
func (t *tolerance) lacks(n entries.SeqNo) {
	if n < lostNumbers {
		t.missing += int(n)
	}
}

// ConfirmLast logs an enqueue of no messages, which has the highest number. From there on
// a replay assigns the numbers that this life assigns.
func (q *Core) ConfirmLast(out *machine.Effects) {
	if !q.restore.tolerance.uncertain {
		return
	}
	q.restore.tolerance.uncertain = false
	out.Begin(record.KindEnqueue)
	out.Fixed(q.LastIn)
	out.Uint(uint64(q.Index.Entries.Last + 1))
	out.Uint(0)
	out.End()
}

// absent returns the error of a record about a message that does not exist, or notes that
// records about it are missing.
func (q *Core) absent(seq entries.SeqNo, format string, args ...any) error {
	if !q.restore.tolerance.on {
		return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
	}
	if seq > q.Index.Entries.Last {
		q.restore.tolerance.missing++
		q.Index.Entries.Last = seq // nobody else may get it
	}
	return nil
}

// numberedFrom checks that the next message may have the number first, and returns an
// error if others are missing before it.
func (q *Core) numberedFrom(first entries.SeqNo) error {
	t, last := &q.restore.tolerance, q.Index.Entries.Last
	if first != last+1 && !t.on {
		return fmt.Errorf("%w: message %d after %d", ErrCorrupt, first, last)
	}
	if t.unbounded {
		t.unbounded, q.restore.high = false, first-1 // the first one since the header
	} else if first > last+1 {
		t.lacks(first - last - 1)
	}
	t.uncertain = false
	return nil
}

// activateAgain replays an activation whose new number is not known: the message keeps
// the number that it had, which nobody else has. What is said of it by its new number is
// left out, so that it may be delivered again, but no other message is mistaken for it.
func (q *Core) activateAgain(old entries.SeqNo, it *record.Item, out *machine.Effects) {
	if e := q.Index.Entries.Get(old); e != nil {
		q.Remove(old, e, out)
	}
	q.Index.Entries.Last = max(old, q.Index.Entries.Last+1)
	q.Insert(old, it, out)
}

// beginWithoutHeader begins a snapshot whose header is missing. The settings stay as they
// are.
func (q *Core) beginWithoutHeader() {
	r := &q.restore
	r.begun, r.inSnapshot, r.high = true, true, entries.Never-1
	r.tolerance.uncertain, r.tolerance.unbounded = true, true
}

// headerWithin replays the header of a snapshot in a queue that has begun. It has the
// highest number.
func (q *Core) headerWithin(last entries.SeqNo) {
	t := &q.restore.tolerance
	if !t.on {
		return
	}
	q.endSnapshot() // its end is missing
	if last > q.Index.Entries.Last {
		t.lacks(last - q.Index.Entries.Last)
		q.Index.Entries.Last = last
	}
	t.uncertain = false
}
