// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/stream"
)

// Errors of every operation.
var (
	// ErrPartition means that the hub has no such partition.
	ErrPartition = errors.New("streamserver: no such partition")
	// ErrBusy means that the mailbox is full.
	ErrBusy = engine.ErrBusy
	// ErrStopped means that the hub has stopped and answers nothing more.
	ErrStopped = engine.ErrStopped
	// ErrMoved means that another owner has claimed the hub's history.
	ErrMoved = engine.ErrMoved
	// errSettings means that a hub cannot be configured like that.
	errSettings = errors.New("streamserver: impossible settings")
)

// Errors of appending.
var (
	// ErrDiskFull means that there is no space for anything new.
	ErrDiskFull = engine.ErrDiskFull
	// ErrOutOfOrder means that the sequence number of a producer is neither the next one
	// nor that of a batch it sent shortly before.
	ErrOutOfOrder = stream.ErrOutOfOrder
	// ErrProducerStolen means that the producer id is used with a higher epoch.
	ErrProducerStolen = stream.ErrProducerStolen
	// errCount means that a batch has no events, or too many.
	errCount = errors.New("streamserver: impossible number of events in a batch")
)

// Errors of readers.
var (
	// ErrStolen means that another reader excludes this one by its epoch. What is
	// returned is an EpochError.
	ErrStolen = errors.New("streamserver: reader is excluded by the epoch of another")
	// ErrReaders means that there are too many readers without an epoch. What is
	// returned is a ReadersError.
	ErrReaders = errors.New("streamserver: too many readers")
	// ErrClosed means that the reader was closed.
	ErrClosed = errors.New("streamserver: reader is closed")
)

// EpochError says which reader excludes another. Its text is that of the service, since
// clients show and compare it. It unwraps to ErrStolen.
type EpochError struct {
	By      string // name of the reader that stays
	ByEpoch int64
	Name    string // of the one that is refused or ended
	Epoch   *int64 // its own; nil is none
	Ended   bool   // it was there first
}

func (e *EpochError) Error() string {
	switch {
	case e.Ended && e.Epoch != nil:
		return fmt.Sprintf("New receiver '%s' with higher epoch of '%d' is created hence current receiver '%s' with epoch '%d' is getting disconnected. "+
			"If you are recreating the receiver, make sure a higher epoch is used.", e.By, e.ByEpoch, e.Name, *e.Epoch)
	case e.Ended:
		return fmt.Sprintf("New receiver '%s' with epoch of '%d' is created hence current receiver '%s' without epoch is getting disconnected. "+
			"If you are recreating the receiver, make sure a higher epoch is used.", e.By, e.ByEpoch, e.Name)
	case e.Epoch != nil:
		return fmt.Sprintf("Receiver '%s' with a higher epoch '%d' already exists. Receiver '%s' with epoch %d cannot be created. "+
			"Make sure you are creating receiver with increasing epoch value to ensure connectivity, or ensure all old epoch receivers are closed or disconnected",
			e.By, e.ByEpoch, e.Name, *e.Epoch)
	default:
		return fmt.Sprintf("At least one receiver for the endpoint is created with epoch of '%d', and so non-epoch receiver is not allowed. "+
			"Either reconnect with a higher epoch, or make sure all epoch receivers are closed or disconnected.", e.ByEpoch)
	}
}

func (e *EpochError) Unwrap() error { return ErrStolen }

// ReadersError refuses a reader without an epoch. It unwraps to ErrReaders.
type ReadersError struct {
	Limit     int
	Connected []string // names of those that are there
}

func (e *ReadersError) Error() string {
	return fmt.Sprintf("Exceeded the maximum number of allowed receivers per partition in a consumer group which is %d. List of connected receivers - %s",
		e.Limit, strings.Join(e.Connected, ", "))
}

func (e *ReadersError) Unwrap() error { return ErrReaders }

// PositionError refuses a reader that would begin behind the end of the partition: its
// position is of another hub, and events would be missed in silence.
type PositionError struct{ Asked, Last stream.SeqNo }

func (e *PositionError) Error() string {
	return fmt.Sprintf("The supplied sequence number '%d' is invalid. The last sequence number in the system is '%d'", e.Asked, e.Last)
}
