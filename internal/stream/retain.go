// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

// Retain changes what is kept. It is applied by the next Tick or Append.
func (p *Partition) Retain(r Retention) { p.retain = r }

// grain is how late events are dropped at most, so that there is one record for many.
func (p *Partition) grain() time.Duration {
	return min(max(p.retain.For/256, time.Millisecond), time.Minute)
}

// NextDeadline implements [machine.Machine].
func (p *Partition) NextDeadline() (time.Time, bool) {
	if p.retain.For <= 0 {
		return time.Time{}, false
	}
	var oldest int64
	switch {
	case p.blocks.len() > 0:
		b := &p.blocks.list()[0]
		oldest = p.storedAt(b.First, b.To)
	case len(p.open) > 0:
		oldest = p.storedAt(p.open[0].First, p.open[0].At)
	default:
		return time.Time{}, false
	}
	return time.UnixMilli(oldest).Add(p.retain.For).Add(p.grain()), true // their sum may overflow
}

// Tick drops the events that are beyond the retention.
func (p *Partition) Tick(now time.Time, out *machine.Effects) {
	if p.retain.For > 0 {
		p.doubt.now = now.UnixMilli()
		p.trimTime(now.Add(-p.retain.For).UnixMilli(), out)
	}
	p.trimBytes(out)
}

// trimTime drops events that are not newer than a time: blocks as a whole, and those of the
// open block batch by batch.
func (p *Partition) trimTime(until int64, out *machine.Effects) {
	keep := p.First()
	sealed := p.blocks.list()
	for i := range sealed {
		if p.storedAt(sealed[i].First, sealed[i].To) > until {
			p.drop(keep, out)
			return
		}
		keep = sealed[i].End
	}
	for i := range p.open {
		if p.storedAt(p.open[i].First, p.open[i].At) > until {
			break
		}
		keep = p.open[i].End()
	}
	p.drop(keep, out)
}

// trimBytes drops the oldest events of a partition that is larger than its limit. The
// newest batch stays. It drops a little more than it must, so that not every batch makes
// it drop another.
func (p *Partition) trimBytes(out *machine.Effects) {
	limit := p.retain.Bytes
	if limit == 0 || p.bytes <= limit {
		return
	}
	limit -= limit / 64
	left, keep := p.bytes, p.First()
	sealed := p.blocks.list()
	for i := 0; i < len(sealed) && left > limit; i++ {
		left -= sealed[i].bytes()
		keep = sealed[i].End
	}
	for i := 0; i < len(p.open)-1 && left > limit; i++ {
		left -= uint64(p.open[i].Body.Size)
		keep = p.open[i].End()
	}
	p.drop(keep, out)
}

// drop drops the batches before keep, which is where a batch or a block begins, and writes
// a record of it.
func (p *Partition) drop(keep SeqNo, out *machine.Effects) {
	if keep <= p.First() {
		return
	}
	p.trim(keep, out)
	out.Begin(kindTrim)
	out.Uint(uint64(p.First()))
	out.End()
}

func (p *Partition) trim(keep SeqNo, out *machine.Effects) {
	for p.blocks.len() > 0 && p.blocks.list()[0].End <= keep {
		b := &p.blocks.list()[0]
		out.Freed = append(out.Freed, b.Bodies, b.Index)
		p.bytes -= b.bytes()
		p.blocks.drop()
	}
	if p.blocks.len() > 0 {
		return
	}
	n := 0
	for n < len(p.open) && p.open[n].End() <= keep {
		out.Freed = append(out.Freed, p.open[n].Body)
		p.bytes -= uint64(p.open[n].Body.Size)
		p.openBytes -= uint64(p.open[n].Body.Size)
		n++
	}
	p.open = p.open[:copy(p.open, p.open[n:])]
}
