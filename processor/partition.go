// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"strconv"
	"time"

	"github.com/triagemq/triagemq/client"
)

// Partition is a partition that this instance owns, for one grant of it. Its methods are
// safe for concurrent use, also after the partition is gone.
type Partition struct {
	pump *pump
}

// ID returns the name of the partition: "0", "1", and so on.
func (p *Partition) ID() string { return p.pump.grant.partition }

// Epoch numbers the grants of the partition, rising. In store mode it is 0.
func (p *Partition) Epoch() int64 { return p.pump.grant.epoch }

// Key returns the same text for the same event, however often and by whomever it is
// handled: hub/partition/sequence number. An effect that is stored under it, in one
// transaction, happens once.
func (p *Partition) Key(e *client.Received) string {
	s := &p.pump.run.settings
	return s.hub + "/" + p.pump.grant.partition + "/" + strconv.FormatInt(int64(e.SeqNo), 10)
}

// Checkpoint saves that all events up to e are handled, whatever the policy. It returns
// ErrLost if the partition is another's by now.
func (p *Partition) Checkpoint(ctx context.Context, e *client.Received) error {
	return p.pump.checkpointByHand(ctx, e.SeqNo)
}

// Done says that an event is handled, in a processor with Async. The order does not
// matter. To call it again, or for a partition that is gone, does nothing.
func (p *Partition) Done(e *client.Received) { p.pump.done(e.SeqNo) }

// Release gives the partition up when the batch in hand is handled. This instance does
// not get it back before coolDown is over. It returns at once.
func (p *Partition) Release(coolDown time.Duration) { p.pump.giveUp(coolDown) }

// Lag returns how old the oldest event is that was fetched and not handled; 0 if none was.
func (p *Partition) Lag() time.Duration { return p.pump.lag() }
