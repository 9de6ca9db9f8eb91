// SPDX-License-Identifier: Apache-2.0

package broker

import "github.com/triagemq/triagemq/internal/streamserver"

// Names of package streamserver that the wire uses.
type (
	// Producer is an idempotent producer of one partition.
	Producer = streamserver.Producer
	// EventBatch is a batch as it was stored.
	EventBatch = streamserver.Batch
	// EpochError says which reader excludes another.
	EpochError = streamserver.EpochError
	// ReadersError refuses a reader because there are too many.
	ReadersError = streamserver.ReadersError
	// PositionError refuses a reader that would begin behind the end of its partition.
	PositionError = streamserver.PositionError
)

// Errors of package streamserver that the wire reports.
var (
	ErrOutOfOrder     = streamserver.ErrOutOfOrder
	ErrProducerStolen = streamserver.ErrProducerStolen
	ErrReaderClosed   = streamserver.ErrClosed
)
