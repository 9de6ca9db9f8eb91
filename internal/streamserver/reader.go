// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/stream"
)

// ReaderOptions say what a reader reads.
type ReaderOptions struct {
	Partition int
	Group     string // consumer group; epochs and the limit of readers are each for one group
	Name      string // in errors and for operators
	Epoch     *int64 // nil is none
	From      stream.Start
	// Ended is called once if the reader ends by itself: another has stolen it, or the
	// hub is gone. It is called on the engine's goroutine, must not block, and is not
	// called after Close has returned; nil is none.
	Ended func(error)
}

// Reader reads one partition from a position on. Its methods but Close are for one
// goroutine.
type Reader struct{}

// Batch is one batch as it was appended.
type Batch struct {
	First stream.SeqNo // number of its first event
	Count int
	At    time.Time // when it was enqueued
	Raw   []byte
	Skip  int // so many events at its beginning are before the start of the reader
}

// OpenReader begins to read. An EpochError or a ReadersError says that other readers
// exclude it.
func (h *Hub) OpenReader(ctx context.Context, o ReaderOptions) (*Reader, error) {
	return nil, errors.ErrUnsupported
}

// Wait returns when Next would return without waiting. The reader holds no bodies
// meanwhile: a caller charges what Next may take after Wait, and thousands of readers at
// the end of their partitions cost next to nothing.
func (r *Reader) Wait(ctx context.Context) error { return errors.ErrUnsupported }

// Position returns the number of the next event that the reader has not returned; that of
// a reader which begins at the end is what the next event will have.
func (r *Reader) Position() stream.SeqNo { return 0 }

// Next returns the next batches, together up to about maxBytes but at least one. It
// waits until there is something. What it returns is valid until the next call.
func (r *Reader) Next(ctx context.Context, maxBytes int) ([]Batch, error) {
	return nil, errors.ErrUnsupported
}

// End returns the last durable event of the partition, as of the last call of Next.
func (r *Reader) End() (last stream.SeqNo, at time.Time) { return -1, time.Time{} }

// Close ends the reader. A call of Next or Wait that waits returns ErrClosed. It does not
// block, and a second call does nothing. A reader that is opened after it does not meet
// this one any more.
func (r *Reader) Close() {}
