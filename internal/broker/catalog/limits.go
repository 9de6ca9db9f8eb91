// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"

	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// CheckBatch rejects a batch from outside that exceeds a limit of package limits. Messages
// that the broker itself moves are not checked: they were accepted once.
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

// checkEntities rejects one more queue, topic or hub at the limit, beside others that are being
// created.
func (c *Catalog) checkEntities(others int) error {
	if n := c.Count(KindQueue) + c.Count(KindTopic) + c.Count(KindHub) + others; n >= limits.Entities {
		return fmt.Errorf("%w: there are %d queues, topics and event hubs, which is the most there can be", ErrQuota, n)
	}
	return nil
}

// CheckName rejects a name that is too long.
func CheckName(what, name string) error {
	return Invalid(limits.CheckText(what, name, limits.Name))
}

// checkNames rejects an arrival with names that are too long: those of the message, which
// a rule or an earlier broker may have set, and its fair key.
func checkNames(a *queue.Arrival) error {
	if len(a.Session) <= limits.Name && len(a.Key) <= limits.Name && len(a.MessageID) <= limits.Name {
		return nil
	}
	return cmp.Or(CheckName("session id", a.Session), CheckName("fair key", a.Key), CheckName("message id", a.MessageID))
}

// checkOutcome rejects a settlement that would write too much into messages: into each, or
// into all of them together. Long reasons and descriptions are cut and not rejected.
func checkOutcome(tokens int, o *Outcome) error {
	size, err := message.CheckChanges(o.Properties)
	size += min(len(o.Reason), longestReason) + min(len(o.Description), longestReason)
	if err == nil && (o.RetryAfter < 0 || o.RetryAfter > LongestRetry) {
		err = fmt.Errorf("a retry after %v; it must be after 0s to %v", o.RetryAfter, LongestRetry)
	}
	if err == nil {
		err = limits.CheckBytes("what one settlement writes into its messages", tokens*size, limits.SettledBytes)
	}
	return Invalid(err)
}

// longestReason is about how many bytes of a reason, or of a description, are stored.
const longestReason = 4 << 10

// fanOut counts what one operation stores beyond the messages themselves, and its limits.
type fanOut struct {
	source int   // messages in the batch
	most   int64 // bytes that rules may add
	added  int64 // bytes that rules have added
	over   bool  // an action exceeded most
	steps  int   // of evaluating rules and conditions
}

// allow reports whether a rule may add a body of about size bytes, and counts it.
func (f *fanOut) allow(size int) bool {
	if f.added+int64(size) > f.most {
		f.over = true
		return false
	}
	f.added += int64(size)
	return true
}

// check rejects a batch that makes more copies than one operation may store: it can be
// sent in parts. A single message never does.
func (f *fanOut) check(copies int) error {
	switch {
	case f.source == 1:
		return nil
	case f.over:
		return Invalid(fmt.Errorf("%w; send smaller batches", &limits.Error{
			What: "bodies that rule actions make of the batch", Got: f.added, Most: f.most, Unit: limits.Bytes}))
	case f.steps > limits.BatchSteps:
		return Invalid(fmt.Errorf("%w; send smaller batches",
			limits.CheckCount("steps that rules and conditions take for the batch", f.steps, limits.BatchSteps)))
	case copies > limits.Copies:
		return Invalid(fmt.Errorf("%w; send smaller batches",
			limits.CheckCount("copies for the subscriptions that take the batch", copies, limits.Copies)))
	}
	return nil
}
