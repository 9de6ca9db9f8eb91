// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
)

// Host owns the machines of an engine and knows what they are for. Its methods are
// called on the engine's goroutine. None of them may wait.
//
// A host consists of parts, each of which has some machines; what a part is, is the
// host's own affair. A part is written into a snapshot as a whole.
type Host interface {
	// Effects returns where all machines of the host, and the host itself, write.
	// It is the same at each call.
	Effects() *machine.Effects

	// Replay applies a record of a kind that the host has written: 3 to 6, and 11
	// and above. in is what follows the kind. A record about a part that is not
	// there is ignored while r is Partial.
	Replay(kind byte, in *machine.Reader, r *Recovery) error
	// ReplayPart adds the part that WritePart has described.
	ReplayPart(in *machine.Reader, r *Recovery) error
	// ReplayMark takes what Mark returned when the snapshot began.
	ReplayMark(mark uint64)
	// ReplayMissing says that there is a record of a unit that is not defined, since
	// a repair has dropped the record that defined it. A host that knows by its number what
	// it is adds it, and the record is applied.
	ReplayMissing(unit uint64, r *Recovery)
	// Recovered is called once, when everything is replayed.
	Recovered() error

	// Parts returns the numbers of the parts in ascending order.
	Parts() []uint64
	// Mark returns a number that a snapshot keeps for the host.
	Mark() uint64
	// Units returns the machines of a part, nil if it is not there any more.
	Units(part uint64) []*Unit
	// WritePart appends a description of the part to the record that is open, and
	// ends it. It may add records of its own after it.
	WritePart(part uint64)
	// Moved is called when a snapshot has moved bodies: nothing refers to them where
	// they were.
	Moved(from []machine.Ref)

	// BeginStep is called when a step begins, after what became durable was released.
	BeginStep()
	// Tick is called when the deadline of a machine has come.
	Tick(u *Unit)
	// TickShort is Tick while the disk has space for settlements only: it writes nothing but
	// what Settling of the machine counts. What nobody can settle without has to be done
	// all the same, or the disk would stay full. It reports whether it did what is
	// due; else it is called again after a while.
	TickShort(u *Unit) (done bool)
	// Serve is called after the commands of a step.
	Serve()
	// Serving reports whether Serve has left something for the next step.
	Serving() bool
	// Commit is called before the open group is appended: the host may add records
	// that it has put off until then.
	Commit()
	// Appended is called when everything written so far, the group included, is
	// durable as soon as at is.
	Appended(at journal.Position)

	// Durable is called at the beginning of a step in which more is durable than
	// before, Release at the end of every step. What depends on nothing but durable
	// positions may leave: see Held.
	Durable(p Permit)
	Release(p Permit)

	// Drain is called before the engine stops cleanly. What was not released
	// goes back; the records of that are committed.
	Drain()
	// Stopped is called when nothing more happens: the host answers all waiting callers.
	Stopped(err error)
}

// Unit is one machine as its engine sees it. ID, Machine and Owner are set by the host
// before Add and do not change.
type Unit struct {
	ID      uint64 // on disk
	Machine machine.Machine
	Owner   any // the host's own
	// Overhead is how many bytes of a snapshot the host writes for the unit beside
	// the machine.
	Overhead uint64

	prefix   []byte // of its records
	deadline        // when it has to be called with the time
	size     uint64 // in a snapshot, as of the last look
	settling uint64 // of what it has, as of the last look
	resized  bool   // on reserve.resized
	round    uint64 // of reserve, when it was put there
	restored bool   // on replay: the snapshot has begun to bring it, or need not
	dropped  bool
}

// Command is one operation in the mailbox. Exactly one of its methods is called, once,
// on the engine's goroutine.
type Command interface {
	// Apply does the work in memory. What it wrote joins the open group, and a
	// caller that waits for it is answered with Tx.Reply.
	Apply(tx *Tx)
	// Fail answers a command that is never applied.
	Fail(err error)
}

// Refusable is a command that may be answered with an error instead of being applied, when
// the disk has had no space at all for refuseAfter.
type Refusable interface {
	Command
	Refusable() bool
}

// Replier waits for an answer. A command on the hot path implements it by a method of
// its own, so that no function has to be made for each.
type Replier interface{ Reply(err error) }

// ReplyFunc makes a function a Replier.
type ReplyFunc func(error)

// Reply calls f.
func (f ReplyFunc) Reply(err error) { f(err) }

// funcCommand is a command made of functions, for what is not on the hot path.
type funcCommand struct {
	Do      func(tx *Tx) error
	Done    func(error) // gets the error of Do when what it wrote is durable; may be nil
	Dropped func(error) // gets the error of a command that is never applied; default Done
}

// Apply implements Command.
func (f *funcCommand) Apply(tx *Tx) {
	if err := f.Do(tx); f.Done != nil {
		tx.Reply(ReplyFunc(f.Done), err)
	}
}

// Fail implements Command.
func (f *funcCommand) Fail(err error) {
	switch {
	case f.Dropped != nil:
		f.Dropped(err)
	case f.Done != nil:
		f.Done(err)
	}
}
