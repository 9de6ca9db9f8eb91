// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"time"
)

// batch checks the limits for the messages of one batch, one after the other: each
// counts those before it as if they were ready already.
type batch struct {
	policy *Policy
	depths Depths

	added   *tally // of the batch so far
	evicted []Eviction
}

func (b *batch) begin(p *Policy, d Depths) {
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
	c := b.policy.class(a.Class)
	size := Depth{1, a.Bytes}
	if c != nil {
		limit := Depth{c.MaxMessages, c.MaxBytes}
		if excess := b.ofClass(a.Class).plus(size).over(limit); excess != (Depth{}) && !b.evictOwn(a.Class, c, excess) {
			return b.refuse(a, "the class has reached its limit", excess)
		}
	}
	if b.policy.Watermarks != (Depth{}) {
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
func (b *batch) fitQueue(a AdmitRequest, c *Class, size Depth) *Refusal {
	mark := b.policy.Watermarks
	excess := b.total().plus(size).over(mark)
	if excess == (Depth{}) {
		return nil
	}
	if own := b.atLeast(a.Level).plus(size).over(mark); own != (Depth{}) && !b.evictOwn(a.Class, c, own) {
		return b.refuse(a, "the queue has reached its watermark at this level and above", own)
	}
	excess = b.total().plus(size).over(mark)
	for _, class := range b.lower(a.Level) {
		if excess == (Depth{}) {
			break
		}
		b.evict(class, excess.atMost(b.waiting(class)))
		excess = b.total().plus(size).over(mark)
	}
	return nil
}

// lower returns the classes below a level that evict, the lowest first.
func (b *batch) lower(level uint8) []uint8 {
	var candidates []uint8
	for i, c := range b.policy.Classes {
		if c.Overflow == Evict && c.rank() < level && b.waiting(uint8(i+1)).Count > 0 {
			candidates = append(candidates, uint8(i+1))
		}
	}
	slices.SortStableFunc(candidates, func(x, y uint8) int {
		return cmp.Compare(b.policy.class(x).rank(), b.policy.class(y).rank())
	})
	return candidates
}

// rank returns the level of a class. One without a fixed level counts as the default
// level, which most of its messages have.
func (c *Class) rank() uint8 {
	if c.LevelFromMessage {
		return noPriority
	}
	return c.Level
}

// evictOwn evicts messages of a class, if it evicts and has enough of them.
func (b *batch) evictOwn(class uint8, c *Class, excess Depth) bool {
	if c == nil || c.Overflow != Evict || !b.waiting(class).covers(excess) {
		return false
	}
	b.evict(class, excess)
	return true
}

func (b *batch) evict(class uint8, d Depth) {
	if d == (Depth{}) {
		return
	}
	for i := range b.evicted {
		if e := &b.evicted[i]; e.Class == class {
			e.Depth = e.plus(d)
			return
		}
	}
	b.evicted = append(b.evicted, Eviction{class, d})
}

// waiting returns what can still be evicted of a class, without the batch itself.
func (b *batch) waiting(class uint8) Depth {
	d := b.depths.OfClass(class)
	for _, e := range b.evicted {
		if e.Class == class {
			d = d.minus(e.Depth)
		}
	}
	return d
}

func (b *batch) ofClass(class uint8) Depth {
	return b.waiting(class).plus(b.added.OfClass(class))
}

func (b *batch) total() Depth {
	return b.withoutEvicted(b.depths.Total().plus(b.added.Total()), 0)
}

func (b *batch) atLeast(level uint8) Depth {
	return b.withoutEvicted(b.depths.AtLeast(level).plus(b.added.AtLeast(level)), level)
}

// withoutEvicted subtracts from d what is evicted at a level or above.
func (b *batch) withoutEvicted(d Depth, level uint8) Depth {
	for _, e := range b.evicted {
		if b.policy.class(e.Class).rank() >= level {
			d = d.minus(e.Depth)
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

func (b *batch) refuse(a AdmitRequest, reason string, excess Depth) *Refusal {
	after := retryUnknown
	if speed := b.depths.Leaving(); speed > 0 {
		after = retryLongest
		if s := float64(max(excess.Count, 1)) / speed; s < retryLongest.Seconds() {
			after = max(time.Duration(s*float64(time.Second)), retryShortest)
		}
	}
	return &Refusal{a.Class, b.policy.ClassName(a.Class), reason, after}
}
