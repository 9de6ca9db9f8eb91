// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"

	"github.com/triagemq/triagemq/internal/broker/jobs/redrive"
)

// The names of redriving that callers of the broker use.
type (
	// Redrive says which dead letters to move.
	Redrive = redrive.Request
	// Redriven is the result of a Redrive.
	Redriven = redrive.Result
)

// Redrive moves dead letters of an entity. In the same shard a move is one group of
// records; between shards a crash may leave a message in both, never in none. Messages
// that were moved before an error stay moved.
func (b *Broker) Redrive(ctx context.Context, addr string, r Redrive) (done Redriven, err error) {
	err = b.runner.Do("redrive", func() error {
		done, err = redrive.Run(ctx, b, b.log, addr, r)
		return err
	})
	return done, err
}
