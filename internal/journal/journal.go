// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"iter"
)

// Position is the address of a record. Positions grow with every append and are
// never used twice; zero is nowhere.
type Position uint64

// Shard names one of the independent histories that share a journal.
type Shard uint32

// Claim is the right to write one shard's history. A later claim of the same
// shard, in this process or another, makes it void.
type Claim struct {
	Shard Shard
	// Epoch counts the claims of the shard; it is one more than the last one's.
	Epoch uint32
	// BlockSize is the unit in which Truncate frees space: position p lies in
	// block p / BlockSize, and no record lies in two.
	BlockSize uint64
	// MaxGroup is how many bytes of records Append takes in one group, whatever
	// their number: RecordSize of each, added up.
	MaxGroup int
}

// RecordSize is what a record of n bytes counts toward Claim.MaxGroup, and at
// most the space that it takes.
func RecordSize(n int) int { return n + 32 }

// Block returns the number of the block that holds at.
func (c Claim) Block(at Position) uint64 { return uint64(at) / c.BlockSize }

// Record is one entry of a shard's history.
type Record struct {
	Shard Shard
	At    Position
	// Payload is valid until the next record is asked for.
	Payload []byte
}

// Status is what a journal tells the owner of a claim as it goes along.
type Status struct {
	// Durable is the position up to which, and including which, every record
	// is safe. It never falls.
	Durable Position
	// Full says that only reserved space is left: groups for Senders are refused
	// with ErrFull, groups for Upkeep still succeed. It is known from the first
	// status on, and clears by itself when space comes back.
	Full bool
	// Busy says that too much waits for the disk: groups for Senders are refused
	// with ErrBusy until it clears.
	Busy bool
	// Err, once set, is final: nothing later becomes durable.
	Err error
}

// Keep says what of a shard's history is still needed.
type Keep struct {
	// From is where the next claim starts to replay.
	From Position
	// Blocks lists, in ascending order, the blocks before From that hold
	// records the owner will still Read.
	Blocks []uint64
}

// Purpose says what a group is for, and so which space it may use.
type Purpose uint8

const (
	// Upkeep is everything that an owner must be able to write so that space can
	// come back: settlements, dead letters, snapshots, bodies that are moved. It
	// may use the reserve.
	Upkeep Purpose = iota
	// Senders is what comes in from outside. It never touches the reserve.
	Senders
)

// Group is what one Append adds: after a crash all of its records are there or
// none.
type Group struct {
	Records [][]byte
	// At gets the address of each record; it must be as long as Records.
	At  []Position
	For Purpose
}

// Usage is what a claim costs in space. All are bytes written, never differences
// of positions.
type Usage struct {
	// Behind is what all shards have appended since this one's Keep.From.
	Behind uint64
	// Oldest says that no other shard begins its replay earlier: this one holds
	// the log back.
	Oldest bool
	// Reserved is the sum of what all claims have asked for with Reserve, and of
	// what the journal itself writes when each of them is truncated.
	Reserved uint64
	// Available is how much groups for Upkeep can have without free space on the
	// disk.
	Available uint64
	// Free is how much of the disk it could use besides.
	Free uint64
	// Keepers is how many shards keep blocks other than the last, and may want to
	// move what lives there. They share what is available.
	Keepers int
}

// Kept is a block that is not freed because of what claims keep.
type Kept struct {
	Size uint64 // bytes that are free when no claim keeps it
	By   int    // how many claims keep it
}

// Share is the part of the block that one of those who keep it answers for.
func (k Kept) Share() uint64 { return k.Size / uint64(k.By) }

// Journal is a durable, ordered, checksummed log of opaque records, shared by
// many shards. All methods may be called from any goroutine; those that take a
// Claim, from one at a time for each claim, but for Truncate.
type Journal interface {
	// Claim makes the caller the only writer of shards and returns what they
	// last kept, in one pass: the sequence yields every record of each of them
	// from its Keep.From on, in order. The sequence must be drained, or
	// abandoned, before the first Append.
	Claim(shards ...Shard) ([]Claim, iter.Seq2[Record, error], error)

	// Append adds a group. It copies the records and stores their addresses
	// into g.At. A group for Senders never waits: ErrBusy and ErrFull refuse it.
	// One for Upkeep waits at most for the making of a block, and only if there
	// is none in reserve; ErrFull then means that the disk is really full.
	Append(c Claim, g *Group) error

	// Read returns the record at a position, appended to dst; it may be asked
	// for as soon as Append returned. A record that was freed is ErrGone, one
	// whose checksum fails ErrCorrupt.
	Read(at Position, dst []byte) ([]byte, error)

	// Truncate declares what is still needed; everything else may be freed, now
	// or later. It is durable when it returns, and may take as long as the disk
	// does; it may be called beside Append for the same claim. ErrFull means that
	// it could not be written now, and may be tried again.
	Truncate(c Claim, keep Keep) error

	// Reserve says how many bytes for Upkeep the owner may need at once, which is
	// the size of a snapshot and what it moves. The journal refuses Senders
	// before it has less than all claims have reserved. It does not wait; the
	// last value counts.
	Reserve(c Claim, bytes uint64)

	// Usage returns what the claim costs.
	Usage(c Claim) Usage

	// Kept returns the blocks that are kept because of the claim, but for the
	// one that is being written, by their numbers. It takes longer than Usage.
	Kept(c Claim) map[uint64]Kept

	// Watch calls fn, from the journal's own goroutine and never concurrently
	// with itself, each time the status changes. fn must not block.
	Watch(c Claim, fn func(Status))
}

// ClaimOne claims a single shard.
func ClaimOne(j Journal, shard Shard) (Claim, iter.Seq2[Record, error], error) {
	claims, records, err := j.Claim(shard)
	if err != nil {
		return Claim{}, nil, err
	}
	return claims[0], records, nil
}

// Errors of reading.
var (
	// ErrGone means that the record was freed.
	ErrGone = errors.New("journal: record is gone")
	// ErrCorrupt means that stored bytes are not what was written.
	ErrCorrupt = errors.New("journal: corrupt")
)

// Errors of writing.
var (
	// ErrFenced means that another claim of the shard has been made since.
	ErrFenced = errors.New("journal: claim is void")
	// ErrTooLarge means that a group does not fit into one block.
	ErrTooLarge = errors.New("journal: group is larger than a block")
	// ErrFull means that the disk is full: for Senders but for what is reserved,
	// for Upkeep altogether. Nothing was written; try again when the status
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
