// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

// Position is the address of a record. Positions grow with every append and are
// never used twice; zero is nowhere.
type Position uint64

// Shard names one of the independent histories that share a journal.
type Shard uint32

// Claim is the right to write one shard's history. It ends when it is released, or
// when the shard is claimed again, in this process or another.
type Claim struct {
	Shard Shard
	// Epoch counts the claims of the shard; it is one more than the last one's.
	Epoch uint32
	// SegmentSize is the unit in which Truncate frees space: position p lies in
	// segment p / SegmentSize, and no record lies in two.
	SegmentSize uint64
	// MaxGroup is how many bytes of records Append takes in one group, whatever
	// their number: RecordSize of each, added up.
	MaxGroup int
}

// RecordSize is what a record of n bytes counts toward Claim.MaxGroup, and at
// most the space that it takes.
func RecordSize(n int) int { return n + 32 }

// GroupSize is at most the space that a group takes beside its records.
const GroupSize = 40

// Segment returns the number of the segment that holds at.
func (c Claim) Segment(at Position) uint64 { return uint64(at) / c.SegmentSize }

// Bound returns how many bytes at most all shards have appended between two
// positions. They may be much fewer, and Usage counts them: it tells when it is time to
// ask.
func (c Claim) Bound(from, to Position) uint64 { return uint64(to - min(from, to)) }

// Record is one entry of a shard's history.
type Record struct {
	Shard Shard
	At    Position
	// Payload is valid until the next record is asked for.
	Payload []byte
	// Lost is zero for a record. Otherwise so many records at least are missing here,
	// because a repair has dropped them; whether they were of this shard is not known.
	Lost uint64
}

// Status is what a journal tells the owner of a claim as it goes along.
type Status struct {
	// Durable is the position up to which, and including which, every record
	// is safe. It never falls.
	Durable Position
	// Full says that only reserved space is left: ordinary groups are refused
	// with ErrFull, essential ones still succeed. It is known from the first
	// status on, and clears by itself when space comes back.
	Full bool
	// Busy says that too much waits for the disk: ordinary groups are refused
	// with ErrBusy until it clears.
	Busy bool
	// Lease is until when the claim is certain to hold, on the monotonic clock of
	// this process; zero means for as long as the process lives. An owner lets
	// nothing out that depends on the history once it is over, since another
	// owner may have begun: it waits until the lease is prolonged or Err says
	// that the claim has ended.
	Lease time.Time
	// Err, once set, is final: nothing later becomes durable. ErrFenced means that
	// the claim has ended, and concerns its shard only.
	Err error
}

// Retain says what of a shard's history is still needed.
type Retain struct {
	// From is where the next claim starts to replay.
	From Position
	// Segments lists, in ascending order, the segments before From that hold
	// records the owner will still Read.
	Segments []uint64
}

// Use says what a group is for, and so which space it may use.
type Use uint8

const (
	// Essential is everything that an owner must be able to write so that space can
	// be freed: settlements, dead letters, snapshots, bodies that are moved. It
	// may use the reserve.
	Essential Use = iota
	// Ordinary is what comes in from outside. It never touches the reserve.
	Ordinary
)

// Group is what one Append adds: after a crash all of its records are there or
// none.
type Group struct {
	Records [][]byte
	// At gets the address of each record; it must be as long as Records.
	At  []Position
	Use Use
	// More is what the owner has to reserve beside what it has, if an ordinary group is
	// accepted: for what it will have to write because of it. The group is refused unless
	// that fits, too, and then it counts until the next call of Reserve.
	More Reservation
}

// Reservation is how many bytes of essential groups an owner may need. The journal refuses
// ordinary groups before it has less than all claims have reserved.
type Reservation struct {
	// Settling is what it takes to let go of everything that is stored. It is left alone
	// by whatever does not let go of anything.
	Settling uint64
	// Snapshots is what the snapshots take that are needed to free space.
	Snapshots uint64
	// Promised is the part of Snapshots that one in progress takes on a full disk. It is not
	// counted twice; other owners leave it alone.
	Promised uint64
}

// Total is what ordinary groups must leave.
func (r Reservation) Total() uint64 { return r.Settling + r.Snapshots }

// Plus returns the sum of two.
func (r Reservation) Plus(o Reservation) Reservation {
	return Reservation{r.Settling + o.Settling, r.Snapshots + o.Snapshots, r.Promised + o.Promised}
}

// Usage is what a claim costs in space. All are bytes written, never differences
// of positions.
type Usage struct {
	// HeldBack is what all shards have appended since this one's Retain.From, if none
	// begins its replay earlier: the log that cannot be freed before this claim
	// moves on. It is zero if another one has to move first.
	HeldBack uint64
	// Reserved is the sum of what all claims have asked for with Reserve, and of
	// what the journal itself writes when each of them is truncated.
	Reserved uint64
	// Settling is the part of it that only settlements may use, and Promised what only the
	// snapshots in progress may.
	Settling, Promised uint64
	// Available is how much essential groups can have without free space on the
	// disk.
	Available uint64
	// Free is how much of the disk it could use besides.
	Free uint64
	// Keepers is how many shards keep segments other than the last, and may want to
	// move what lives there. They share what is available.
	Keepers int
}

// RetainedSegment is a segment that is not freed because claims retain it.
type RetainedSegment struct {
	Size uint64 // bytes that are free when no claim keeps it
	By   int    // how many claims keep it
}

// Share is the part of the segment that one of those who keep it answers for.
func (k RetainedSegment) Share() uint64 { return k.Size / uint64(k.By) }

// Read is one record that is asked for.
type Read struct {
	At Position
	// Buf is what the record is appended to. It belongs to the journal during the
	// call, and permanently if the call ended with its context.
	Buf []byte
	// Err is why there is no record: ErrFreed if it was freed, ErrCorrupt if its
	// checksum fails, what ended the context.
	Err error
}

// Journal is a durable, ordered, checksummed log of opaque records, shared by
// many shards. All methods may be called from any goroutine; those that take a
// Claim, from one at a time for each claim, but for Truncate and Release.
//
// Calls with a context may wait for the disk or the network. They return when the
// context ends, with its cause; what they were asked to do may still happen.
type Journal interface {
	// Claim makes the caller the only writer of shards and returns what they
	// last kept, in one pass: the sequence yields every record of each of them
	// from its Retain.From on, in order, or what ended ctx. Where a repair has dropped
	// records it says so to each shard. It must be drained, or abandoned, before the
	// first Append.
	Claim(ctx context.Context, shards ...Shard) ([]Claim, iter.Seq2[Record, error], error)

	// Append adds a group. It copies the records and stores their addresses
	// into g.At. An ordinary group never waits: ErrBusy and ErrFull refuse it.
	// An essential one waits at most for the making of a segment, and only if there
	// is none in reserve; ErrFull then means that the disk is really full.
	Append(c Claim, g *Group) error

	// Read reads records, and gives each of reads its bytes or its error. A record
	// may be asked for as soon as Append returned. The slice is the caller's again
	// when Read returns.
	Read(ctx context.Context, reads []Read)

	// Truncate declares what is still needed; everything else may be freed, now
	// or later. It is durable when it returns without error; it may be called
	// beside Append for the same claim. ErrFull means that it could not be written
	// now, and may be tried again.
	Truncate(ctx context.Context, c Claim, r Retain) error

	// Release ends a claim: from the call on it writes nothing. When it returns
	// without error everything that was appended is durable, and the next
	// claim of the shard need not wait for a lease to end.
	Release(ctx context.Context, c Claim) error

	// Reserve says how many bytes of essential groups the owner may need at once. It does
	// not wait; the last value counts.
	Reserve(c Claim, r Reservation)

	// Usage returns what the claim costs.
	Usage(c Claim) Usage

	// Retained returns the segments that are kept because of the claim, but for the
	// one that is being written, by their numbers. It takes longer than Usage.
	Retained(c Claim) map[uint64]RetainedSegment

	// Status returns how things are now. It is known from Claim on.
	Status(c Claim) Status

	// Watch calls fn, from the journal's own goroutine and never concurrently
	// with itself, soon and then each time the status changes. fn must not block.
	// The last status has an Err.
	Watch(c Claim, fn func(Status))
}

// ClaimOne claims a single shard.
func ClaimOne(ctx context.Context, j Journal, shard Shard) (Claim, iter.Seq2[Record, error], error) {
	claims, records, err := j.Claim(ctx, shard)
	if err != nil {
		return Claim{}, nil, err
	}
	return claims[0], records, nil
}

// ReadOne reads a single record and returns it appended to dst.
func ReadOne(ctx context.Context, j Journal, at Position, dst []byte) ([]byte, error) {
	reads := single.Get().(*[1]Read)
	reads[0] = Read{At: at, Buf: dst}
	j.Read(ctx, reads[:])
	done := reads[0]
	reads[0] = Read{}
	single.Put(reads)
	return done.Buf, done.Err
}

var single = sync.Pool{New: func() any { return new([1]Read) }}

// Errors of reading.
var (
	// ErrFreed means that the record was freed.
	ErrFreed = errors.New("journal: record was freed")
	// ErrCorrupt means that stored bytes are not what was written.
	ErrCorrupt = errors.New("journal: corrupt")
)

// Errors of writing.
var (
	// ErrFenced means that the claim has ended: it was released, or the shard was
	// claimed by another owner. It concerns that shard only.
	ErrFenced = errors.New("journal: the claim has ended")
	// ErrTooLarge means that a group does not fit into one segment.
	ErrTooLarge = errors.New("journal: group is larger than a segment")
	// ErrFull means that the disk is full: for ordinary groups but for what is
	// reserved, for essential ones altogether. Nothing was written; try again when the status
	// changes.
	ErrFull = errors.New("journal: disk is full")
	// ErrBusy means that too much waits for the disk. Nothing was written; try
	// again when the status changes.
	ErrBusy = errors.New("journal: too much waits for the disk")
	// ErrFailed means that an earlier write or sync failed; the process must
	// end and recover by replay.
	ErrFailed = errors.New("journal: failed")
	// ErrClosed means that the journal was closed.
	ErrClosed = errors.New("journal: closed")
)
