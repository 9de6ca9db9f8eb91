// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"

	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// CheckBatch refuses a batch from outside that is beyond a limit of package limits.
// What the broker itself moves is not looked at: it was let in once.
func CheckBatch(batch []*message.Message) error {
	if len(batch) > limits.Batch {
		return Invalid(limits.CheckCount("messages in the batch", len(batch), limits.Batch))
	}
	for _, m := range batch {
		if err := m.CheckLimits(); err != nil {
			return Invalid(err)
		}
	}
	return nil
}

// checkEntities refuses one more queue or topic if there are as many as there may be.
func (c *Catalog) checkEntities() error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if len(c.nodes) < limits.Entities {
		return nil
	}
	n := 0
	for _, e := range c.nodes {
		if e.Topic == nil {
			n++
		}
	}
	if n >= limits.Entities {
		return fmt.Errorf("%w: there are %d queues and topics, which is the most there can be", ErrQuota, n)
	}
	return nil
}

// CheckName refuses a name that is too long.
func CheckName(what, name string) error {
	return Invalid(limits.CheckText(what, name, limits.Name))
}

// checkNames refuses an arrival with names that are too long: those of the message,
// which a rule or the broker before this one may have made, and its fair key.
func checkNames(a *queue.Arrival) error {
	if len(a.Session) <= limits.Name && len(a.Key) <= limits.Name && len(a.MessageID) <= limits.Name {
		return nil
	}
	return cmp.Or(CheckName("session id", a.Session), CheckName("fair key", a.Key), CheckName("message id", a.MessageID))
}

// checkOutcome refuses a settlement that would write too much into messages: into
// each, or into all of them together. Reasons and descriptions that are long are cut
// and not refused.
func checkOutcome(tokens int, o *Outcome) error {
	size, err := message.CheckChanges(o.Properties)
	size += min(len(o.Reason), longestReason) + min(len(o.Description), longestReason)
	if err == nil {
		err = limits.CheckBytes("what one settlement writes into its messages", tokens*size, limits.SettledBytes)
	}
	return Invalid(err)
}

// longestReason is about how many bytes of a reason, or of a description, are kept.
const longestReason = 4 << 10

// fanOut is what one operation has stored, and may, beyond the messages as they are.
type fanOut struct {
	source int   // messages in the batch
	most   int64 // bytes that rules may add
	added  int64 // bytes that rules have added
	over   bool  // an action had no room
	steps  int   // that rules took
}

// room reports whether a rule may add a body of about size bytes, and counts it.
func (f *fanOut) room(size int) bool {
	if f.added+int64(size) > f.most {
		f.over = true
		return false
	}
	f.added += int64(size)
	return true
}

// check refuses a batch that makes more copies than one operation may store: it can
// be sent in parts. A single message never does.
func (f *fanOut) check(copies int) error {
	switch {
	case f.source == 1:
		return nil
	case f.over:
		return Invalid(fmt.Errorf("%w; send smaller batches", &limits.Error{
			What: "bodies that rule actions make of the batch", Got: f.added, Most: f.most, Unit: limits.Bytes}))
	case f.steps > limits.BatchSteps:
		return Invalid(fmt.Errorf("%w; send smaller batches",
			limits.CheckCount("steps that the rules of the topic take for the batch", f.steps, limits.BatchSteps)))
	case copies > limits.Copies:
		return Invalid(fmt.Errorf("%w; send smaller batches",
			limits.CheckCount("copies for the subscriptions that take the batch", copies, limits.Copies)))
	}
	return nil
}
