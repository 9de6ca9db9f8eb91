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
	open(ctx context.Context, partition string, at Position, epoch int64) (reader, error)
	send(ctx context.Context, queue string, m *client.Message) error
	join(ctx context.Context, s *settings, run string) (member, error)
}

// reader reads the events of one partition.
type reader interface {
	Receive(ctx context.Context, limit int) ([]*client.Received, error)
	Close() error
}

// member is this instance's place in a group that the broker coordinates.
type member interface {
	next(ctx context.Context) (view, error)
	report(ctx context.Context, rs []report) error
	checkpoint(ctx context.Context, cs []mark) ([]error, error)
	release(ctx context.Context, partition string, epoch int64, coolDown time.Duration) error
	rewind(ctx context.Context, partition string, to Position) error
	leave(ctx context.Context) error
	close() error
}

// view is all that an instance owns at a moment.
type view struct {
	hub    int // partitions of the hub
	grants []grant
}

// grant is the ownership of a partition.
type grant struct {
	partition string
	epoch     int64
	after     client.SeqNo // checkpoint; -1: none
	revokeBy  time.Time    // when it is taken; zero: it stays
}

// mark is how far a partition is handled.
type mark struct {
	partition string
	epoch     int64
	seqNo     client.SeqNo
}

// report is what the coordinator hears of a partition.
type report struct {
	partition string
	handled   client.SeqNo
	busy      time.Duration // since the last report
	bytes     uint64        // since the last report
}
