// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"

	"github.com/triagemq/triagemq/internal/broker/jobs/redrive"
)

// What of redriving the wire knows by the broker's name.
type (
	// Redrive says which dead letters to give another chance.
	Redrive = redrive.Request
	// Redriven says what a Redrive did.
	Redriven = redrive.Result
)

// Redrive moves dead letters of an entity. In the same shard a move is one group
// of records; between shards a crash may leave a message in both, never in none.
// What moved before an error stays moved.
func (b *Broker) Redrive(ctx context.Context, addr string, r Redrive) (done Redriven, err error) {
	err = b.runner.Do("redrive", func() error {
		done, err = redrive.Run(ctx, b, b.log, addr, r)
		return err
	})
	return done, err
}
