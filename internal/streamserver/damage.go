// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"cmp"
	"slices"
	"sync"

	"github.com/triagemq/triagemq/internal/stream"
)

// Damage says which events of a partition cannot be read.
type Damage struct {
	Partition int
	First     stream.SeqNo
	Count     int64
	Err       error
}

// maxDamages is how many ranges of damaged events are remembered, so that each event is
// reported once however many readers meet it. When there are more they are forgotten.
const maxDamages = 4096

// damages reports what cannot be read. It may be used from any goroutine.
type damages struct {
	report func(Damage)

	mu    sync.Mutex
	known map[int][]span // guarded by mu; by partition, ascending and apart from each other
	spans int            // guarded by mu; in known
}

// span is events up to end, without it.
type span struct{ first, end stream.SeqNo }

// add reports the events of a damage that are new.
func (d *damages) add(x Damage) {
	if d.report == nil {
		return
	}
	if x.Count = d.learn(x.Partition, span{x.First, x.First + stream.SeqNo(x.Count)}); x.Count > 0 {
		d.report(x)
	}
}

// learn remembers events and returns how many of them were not known.
func (d *damages) learn(partition int, s span) (fresh int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || d.spans >= maxDamages {
		d.known, d.spans = make(map[int][]span), 0
	}
	known := d.known[partition]
	from, _ := slices.BinarySearchFunc(known, s.first, func(k span, at stream.SeqNo) int { return cmp.Compare(k.end, at) })
	fresh = int64(s.end - s.first)
	to := from
	for ; to < len(known) && known[to].first <= s.end; to++ { // they overlap or touch
		fresh -= int64(max(0, min(known[to].end, s.end)-max(known[to].first, s.first)))
		s = span{min(known[to].first, s.first), max(known[to].end, s.end)}
	}
	d.known[partition] = slices.Replace(known, from, to, s)
	d.spans += len(d.known[partition]) - len(known)
	return fresh
}
