// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/machine"
)

// Refs implements [machine.Machine]. The cursor counts blocks and then batches.
func (p *Partition) Refs(from machine.Cursor, b *machine.Budget, fn func(machine.Ref)) (next machine.Cursor, done bool) {
	sealed := p.blocks.list()
	for i := int(from); i < len(sealed)+len(p.open); i++ {
		if b.Items <= 0 {
			return machine.Cursor(i), false
		}
		b.Items--
		if i < len(sealed) {
			fn(sealed[i].Bodies)
			fn(sealed[i].Index)
		} else {
			fn(p.open[i-len(sealed)].Body)
		}
	}
	return 0, true
}

// Check implements [machine.Machine]. The numbers are those of the invariants in doc.go.
func (p *Partition) Check() error {
	var bytes, open uint64
	end, body := SeqNo(0), uint64(0)
	follows := func(what string, first, behind SeqNo, from, to int64, place uint64) error {
		if first < end || behind <= first || from < 0 || to < 0 || place <= body {
			return fmt.Errorf("invariant 1: %s of the events %d to %d does not follow event %d", what, first, behind-1, end-1)
		}
		end, body = behind, place
		return nil
	}
	sealed := p.blocks.list()
	for i := range sealed {
		b := &sealed[i]
		if err := follows("block", b.First, b.End, b.From, b.To, b.Bodies.At); err != nil {
			return err
		}
		bytes += b.bytes()
	}
	for i := range p.open {
		b := &p.open[i]
		if err := follows("batch", b.First, b.End(), b.At, b.At, b.Body.At); err != nil {
			return err
		}
		open += uint64(b.Body.Size)
	}
	switch {
	case end > p.next:
		return fmt.Errorf("invariant 1: event %d behind the end, which is %d", end-1, p.next)
	case bytes+open != p.bytes || open != p.openBytes:
		return fmt.Errorf("invariant 2: counts %d bytes, %d of them open, found %d and %d", p.bytes, p.openBytes, bytes+open, open)
	case len(p.producers.list) > maxProducers:
		return fmt.Errorf("invariant 3: %d producers", len(p.producers.list))
	}
	return nil
}
