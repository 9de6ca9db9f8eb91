// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/policy"
)

// batch checks the limits for the messages of one batch, one after the other: each
// counts those before it as if they were ready already.
type batch struct {
	policy *policy.Policy
	depths Depths

	added   *tally // of the batch so far
	evicted []Eviction
}

func (b *batch) begin(p *policy.Policy, d Depths) {
	b.policy, b.depths = p, d
	if b.added == nil {
		b.added = new(tally)
	}
}

func (b *batch) end() {
	if b.policy == nil { // it was not begun
		return
	}
	*b.added = tally{}
	*b = batch{added: b.added, evicted: b.evicted[:0]}
}

// fit checks the limits for a message, and rejects it if it exceeds one.
func (b *batch) fit(a AdmitRequest) *Refusal {
	c := b.policy.Class(a.Class)
	size := policy.Depth{Count: 1, Bytes: a.Bytes}
	if c != nil {
		limit := policy.Depth{Count: c.MaxMessages, Bytes: c.MaxBytes}
		if excess := b.ofClass(a.Class).Plus(size).Over(limit); excess != (policy.Depth{}) && !b.evictOwn(a.Class, c, excess) {
			return b.refuse(a, "the class has reached its limit", excess)
		}
	}
	if b.policy.Watermarks != (policy.Depth{}) {
		if r := b.fitQueue(a, c, size); r != nil {
			return r
		}
	}
	b.added.Add(a.Class, a.Level, a.Bytes)
	return nil
}

// fitQueue keeps the watermarks. Only messages at the same level or above count
// against them. Lower classes with evict lose their oldest messages; without it, the
// queue exceeds the watermark. So a level is rejected only if all lower levels are.
func (b *batch) fitQueue(a AdmitRequest, c *policy.Class, size policy.Depth) *Refusal {
	mark := b.policy.Watermarks
	excess := b.total().Plus(size).Over(mark)
	if excess == (policy.Depth{}) {
		return nil
	}
	if own := b.atLeast(a.Level).Plus(size).Over(mark); own != (policy.Depth{}) && !b.evictOwn(a.Class, c, own) {
		return b.refuse(a, "the queue has reached its watermark at this level and above", own)
	}
	excess = b.total().Plus(size).Over(mark)
	for _, class := range b.lower(a.Level) {
		if excess == (policy.Depth{}) {
			break
		}
		b.evict(class, excess.AtMost(b.waiting(class)))
		excess = b.total().Plus(size).Over(mark)
	}
	return nil
}

// lower returns the classes below a level that evict, the lowest first.
func (b *batch) lower(level uint8) []uint8 {
	var candidates []uint8
	for i, c := range b.policy.Classes {
		if c.Overflow == policy.Evict && c.Rank() < level && b.waiting(uint8(i+1)).Count > 0 {
			candidates = append(candidates, uint8(i+1))
		}
	}
	slices.SortStableFunc(candidates, func(x, y uint8) int {
		return cmp.Compare(b.policy.Class(x).Rank(), b.policy.Class(y).Rank())
	})
	return candidates
}

// evictOwn evicts messages of a class, if it evicts and has enough of them.
func (b *batch) evictOwn(class uint8, c *policy.Class, excess policy.Depth) bool {
	if c == nil || c.Overflow != policy.Evict || !b.waiting(class).Covers(excess) {
		return false
	}
	b.evict(class, excess)
	return true
}

func (b *batch) evict(class uint8, d policy.Depth) {
	if d == (policy.Depth{}) {
		return
	}
	for i := range b.evicted {
		if e := &b.evicted[i]; e.Class == class {
			e.Depth = e.Plus(d)
			return
		}
	}
	b.evicted = append(b.evicted, Eviction{class, d})
}

// waiting returns what can still be evicted of a class, without the batch itself.
func (b *batch) waiting(class uint8) policy.Depth {
	d := b.depths.OfClass(class)
	for _, e := range b.evicted {
		if e.Class == class {
			d = d.Minus(e.Depth)
		}
	}
	return d
}

func (b *batch) ofClass(class uint8) policy.Depth {
	return b.waiting(class).Plus(b.added.OfClass(class))
}

func (b *batch) total() policy.Depth {
	return b.withoutEvicted(b.depths.Total().Plus(b.added.Total()), 0)
}

func (b *batch) atLeast(level uint8) policy.Depth {
	return b.withoutEvicted(b.depths.AtLeast(level).Plus(b.added.AtLeast(level)), level)
}

// withoutEvicted subtracts from d what is evicted at a level or above.
func (b *batch) withoutEvicted(d policy.Depth, level uint8) policy.Depth {
	for _, e := range b.evicted {
		if b.policy.Class(e.Class).Rank() >= level {
			d = d.Minus(e.Depth)
		}
	}
	return d
}

// The bounds of how long a rejected sender should wait. The time follows from the speed
// at which messages leave, if that is known. The upper bound makes senders retry in time
// after a backlog has ended.
const (
	retryUnknown  = time.Second
	retryShortest = 100 * time.Millisecond
	retryLongest  = 30 * time.Second
)

func (b *batch) refuse(a AdmitRequest, reason string, excess policy.Depth) *Refusal {
	after := retryUnknown
	if speed := b.depths.Leaving(); speed > 0 {
		after = retryLongest
		if s := float64(max(excess.Count, 1)) / speed; s < retryLongest.Seconds() {
			after = max(time.Duration(s*float64(time.Second)), retryShortest)
		}
	}
	return &Refusal{a.Class, b.policy.ClassName(a.Class), reason, after}
}
