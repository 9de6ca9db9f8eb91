// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"time"

	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Disposition is how a consumer settles a message.
type Disposition = queueserver.Disposition

// The dispositions.
const (
	Complete   = queueserver.Complete
	Abandon    = queueserver.Abandon // failed: counts toward the limit of deliveries
	Release    = queueserver.Release // handed back: does not count
	Defer      = queueserver.Defer
	DeadLetter = queueserver.Reject
)

// Outcome settles a message.
type Outcome struct {
	Disposition Disposition
	Reason      string // of a dead letter
	Description string // of a dead letter
	// RetryAfter is how long nobody gets a message that is abandoned; zero is at once.
	RetryAfter time.Duration
	// Properties are merged into the application properties of a message that
	// is not completed.
	Properties []message.Change
}

// LongestRetry is how long a message may wait for its next delivery.
const LongestRetry = limits.RetryDays * 24 * time.Hour

// Settle settles messages of one of the queues. It never blocks and does not retain
// tokens; done gets nil if every token was valid, else an error or nil for each. Without a
// done the settlement has no acknowledgement and may be delayed.
func (n *Entity) Settle(part queueserver.SubQueue, tokens []queue.Token, o Outcome, done func([]error)) {
	n.SettleAs(0, part, tokens, o, done)
}

// SettleAs is Settle by the consumer that got the messages. If it is detached afterwards, its
// session is released when they are settled.
func (n *Entity) SettleAs(by queueserver.ConsumerID, part queueserver.SubQueue, tokens []queue.Token, o Outcome, done func([]error)) {
	refuse := func(err error) {
		if done == nil {
			return // there is no acknowledgement: the locks expire
		}
		errs := make([]error, len(tokens))
		for i := range errs {
			errs[i] = err
		}
		done(errs)
	}
	if o.Properties != nil || o.Reason != "" || o.Description != "" || o.RetryAfter != 0 {
		if err := checkOutcome(len(tokens), &o); err != nil {
			refuse(err)
			return
		}
	}
	x := new(struct {
		queueserver.Settle
		one [1]queue.Token // memory for a single token
	})
	op := &x.Settle
	*op = queueserver.Settle{
		ID: n.ID, SubQueue: part, Consumer: by, Tokens: append(x.one[:0], tokens...), Disposition: o.Disposition,
		Reason: o.Reason, Description: o.Description, RetryAfter: o.RetryAfter, Properties: o.Properties,
	}
	if done != nil {
		op.Done = func(errs []error) {
			for i, err := range errs {
				errs[i] = Translate(err)
			}
			done(errs)
		}
	}
	if err := n.Shard.Settle(op); err != nil {
		refuse(err)
	}
}
