// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/client"
)

// broker is what a processor needs of a client. Tests have their own.
type broker interface {
	partitions(ctx context.Context) ([]string, error)
	// last returns the number of the youngest event of a partition; -1 if it never had one.
	last(ctx context.Context, partition string) (client.SeqNo, error)
	open(ctx context.Context, partition string, o readerOptions) (reader, error)
	send(ctx context.Context, queue string, m *client.Message) error
	join(ctx context.Context, s *settings) (fleet, error)
	close()
}

// readerOptions say how a partition is read.
type readerOptions struct {
	at    Position
	epoch int64
	ahead int // bytes that are on their way before they are asked for, about
}

// reader reads the events of one partition. Its receive may be called again after an error.
type reader interface {
	receive(ctx context.Context, limit int) (stored, error)
	Close() error
}

// fleet is how instances share partitions: by a coordinator, or by a store. Its methods
// are safe for concurrent use, but only one goroutine calls next.
type fleet interface {
	// next waits for news, and returns all that this instance owns.
	next(ctx context.Context) (view, error)
	// report tells that this instance lives, and what it did. It returns for which of its times
	// in the fleet that was accepted.
	report(ctx context.Context, rs []report) (joins uint64, err error)
	// checkpoint saves positions. The errors are those of each; ErrLost means that the
	// partition is another's.
	checkpoint(ctx context.Context, ms []mark) ([]error, error)
	// release gives up a partition that is not worked on any more.
	release(ctx context.Context, g grant, coolDown time.Duration) error
	// stolen tells that a reader was ended by another. It returns whether the partition is to
	// be released all the same.
	stolen(g grant) bool
	rewind(ctx context.Context, partition string, to Position) error
	// leave tells that this instance wants no partitions any more. Those it has stay its own
	// until they are released.
	leave(ctx context.Context) error
	close() error
	// silence is how long an instance that cannot report may go on; 0: as long as it likes.
	silence() time.Duration
}

// view is all that an instance owns at a moment.
type view struct {
	hub    int    // partitions of the hub
	joins  uint64 // how often the instance had joined when it heard this
	grants []grant
}

// grant is the ownership of a partition.
type grant struct {
	partition string
	epoch     int64        // of its reader
	turn      int64        // rises with each grant of the partition to this instance
	after     client.SeqNo // checkpoint; none: there is none
	rewound   *Position    // where to begin instead, in store mode
	revokeBy  time.Time    // when it is taken; zero: it stays
}

// Checkpoints that are no numbers of events.
const (
	none      = client.NoCheckpoint
	beginning = client.BeforeFirst // a rewind to before event 0
	oldest    = client.SeqNo(-3)   // in store mode: before the oldest event, whatever its number
)

// mark is how far a partition is handled.
type mark struct {
	grant grant
	seqNo client.SeqNo
}

// report is what the coordinator hears of a partition.
type report struct {
	partition string
	epoch     int64 // of the grant
	handled   client.SeqNo
	busy      time.Duration // since the last report
	bytes     uint64        // since the last report
	skipped   uint64        // events of gaps, since the last report
}
