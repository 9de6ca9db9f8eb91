// SPDX-License-Identifier: Apache-2.0

package record

import (
	"time"

	"github.com/triagemq/triagemq/internal/ordering"
)

// Config has the settings of a queue. The zero value is a strict queue without limits
// that is not paused and whose locks last no time: set LockFor.
type Config struct {
	LockFor         time.Duration // how long a lock lasts without renewal
	TTL             time.Duration // upper bound of the time to live; zero is no bound
	MaxFailures     uint32        // failed deliveries that make a dead letter; zero is never
	DuplicateWindow time.Duration // window of duplicate detection; zero is off
	MaxBytes        int64         // of Footprint; zero is no limit
	MaxCount        int64         // of all messages; zero is no limit

	Sessions          bool // every message has a session; fixed by New
	DeadLetterExpired bool // a message that expires becomes a dead letter
	SendPaused        bool // Enqueue refuses
	ReceivePaused     bool // Take finds nothing
	DeadLetterQueue   bool // a queue of dead letters: no failure counts, no expiry; fixed by New

	Order ordering.Order
}
