// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
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

// maxDamages is how many damages are remembered, so that each is reported once however
// many readers meet it. When there are more they are forgotten.
const maxDamages = 4096

// damages reports what cannot be read. It may be used from any goroutine.
type damages struct {
	report func(Damage)

	mu    sync.Mutex
	known map[place]bool // guarded by mu
}

// place is where a damage begins.
type place struct {
	partition int
	first     stream.SeqNo
}

// add reports a damage that is new.
func (d *damages) add(x Damage) {
	if d.report != nil && d.first(place{x.Partition, x.First}) {
		d.report(x)
	}
}

// first reports whether a place was not known.
func (d *damages) first(at place) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known[at] {
		return false
	}
	if d.known == nil || len(d.known) >= maxDamages {
		d.known = make(map[place]bool)
	}
	d.known[at] = true
	return true
}
