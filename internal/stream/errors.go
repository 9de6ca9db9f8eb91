// SPDX-License-Identifier: Apache-2.0

package stream

import "errors"

var (
	// errCorrupt means that a record is not one of a partition in this state.
	errCorrupt = errors.New("stream: corrupt record")
	// ErrIndex means that what was read is not the index of a block.
	ErrIndex = errors.New("stream: corrupt index")
)

// Errors of idempotent producers.
var (
	// ErrOutOfOrder means that the sequence number of a producer is neither the next one
	// nor that of a batch it sent shortly before.
	ErrOutOfOrder = errors.New("stream: sequence number of the producer is out of order")
	// ErrProducerStolen means that the producer id is used with a higher epoch.
	ErrProducerStolen = errors.New("stream: producer id is used with a higher epoch")
)
