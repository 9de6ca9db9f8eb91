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
}

// Block returns the number of the block that holds at.
func (c Claim) Block(at Position) uint64 { return uint64(at) / c.BlockSize }

// Record is one entry of a shard's history.
type Record struct {
	At Position
	// Payload is valid until the next record is asked for.
	Payload []byte
}

// Status is what a journal tells the owner of a claim as it goes along.
type Status struct {
	// Durable is the position up to which, and including which, every record
	// is safe. It never falls.
	Durable Position
	// Full says that the disk has no room for another block. Appends still
	// succeed, from reserved space; the owner should admit nothing new and let
	// consumers go on until it clears.
	Full bool
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

// Journal is a durable, ordered, checksummed log of opaque records, shared by
// many shards. All methods may be called from any goroutine; those that take a
// Claim, from one at a time for each claim.
type Journal interface {
	// Claim makes the caller the only writer of shard and returns what it
	// last kept: the sequence yields every record from Keep.From on, in order.
	// The sequence must be drained, or abandoned, before the first Append.
	Claim(shard Shard) (Claim, iter.Seq2[Record, error], error)

	// Append adds records as one group: after a crash all of them are there or
	// none. It copies them, stores the address of each into at, which must be
	// as long as records, and does not wait for the disk.
	Append(c Claim, records [][]byte, at []Position) error

	// Read returns the record at a position, appended to dst; it may be asked
	// for as soon as Append returned. A record that was freed is ErrGone, one
	// whose checksum fails ErrCorrupt.
	Read(at Position, dst []byte) ([]byte, error)

	// Truncate declares what is still needed; everything else may be freed, now
	// or later. It is durable when it returns.
	Truncate(c Claim, keep Keep) error

	// Watch calls fn, from the journal's own goroutine and never concurrently
	// with itself, each time the status changes. fn must not block.
	Watch(c Claim, fn func(Status))
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
	// ErrFull means that the disk is full and what was reserved is used up.
	// The group was not appended; the journal goes on when space is freed.
	ErrFull = errors.New("journal: disk is full")
	// ErrFailed means that an earlier write or sync failed; the process must
	// end and recover by replay.
	ErrFailed = errors.New("journal: failed")
	// ErrClosed means that the journal was closed.
	ErrClosed = errors.New("journal: closed")
)
