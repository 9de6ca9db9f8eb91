// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"errors"
	"math"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
)

// Append is one batch for a partition. It is stored as it is and never taken apart here.
type Append struct {
	Partition int
	Raw       []byte // not changed before Done is called
	Count     int    // events in it, at least 1
	Producer  *Producer
	// Done is called exactly once, when the batch is durable or refused. It must not
	// block. first is the number of the first event in the batch, also of a batch that
	// the producer had sent before.
	Done func(first stream.SeqNo, err error)

	hub   *Hub         // set by it
	first stream.SeqNo // when it is stored
}

// Append stores a batch. It never blocks; a.Done may be called before it returns.
func (h *Hub) Append(a *Append) {
	if a.Count < 1 || a.Count > math.MaxInt32 {
		a.Done(0, errCount)
		return
	}
	a.hub = h
	if err := h.Submit((*appending)(a)); err != nil {
		a.Done(0, err)
	}
}

// appending is the command.
type appending Append

// Fail implements [engine.Command].
func (a *appending) Fail(err error) { a.Done(0, err) }

// Refusable implements [engine.Refusable].
func (a *appending) Refusable() bool { return true }

// Reply implements [engine.Replier].
func (a *appending) Reply(err error) { a.Done(a.first, err) }

// Apply implements [engine.Command].
func (a *appending) Apply(tx *engine.Tx) {
	if tx.StillFull() {
		a.Done(0, ErrDiskFull)
		return
	}
	if tx.Delayed() { // they came first
		a.delay(tx)
		return
	}
	err := a.store(a.hub)
	switch {
	case err == nil:
		tx.Reply(a, nil)
	case errors.Is(err, journal.ErrBusy):
		a.delay(tx)
	default:
		a.Done(0, err)
	}
}

// delay keeps a batch for which the journal has no space at the moment.
func (a *appending) delay(tx *engine.Tx) {
	if !tx.Delay(a) {
		a.Done(0, ErrBusy)
	}
}

// storing is what storing a batch needs, kept for the next.
type storing struct {
	raws  [1][]byte
	refs  [1]machine.Ref
	index []byte
}

// store does the work. An error leaves nothing but bodies that nobody refers to.
func (a *appending) store(h *Hub) error {
	p, err := h.partition(a.Partition)
	if err != nil {
		return err
	}
	if a.Producer != nil {
		first, again, err := p.m.Admit(*a.Producer, uint32(a.Count))
		if again || err != nil {
			a.first = first
			return err
		}
	}
	if len(a.Raw) > h.tx.MaxRecord() {
		return engine.ErrTooLarge
	}
	body, err := h.store(a.Raw)
	if err != nil {
		return err
	}
	if err := h.sealFor(p, body); err != nil {
		return err
	}
	h.tx.WriteAs(p.unit)
	a.first = p.m.Append(h.tx.Now(), stream.Arrival{Body: body, Count: uint32(a.Count), Producer: a.Producer}, &h.eff)
	p.arrived.events += uint64(a.Count)
	p.arrived.bytes += uint64(len(a.Raw))
	h.pace.earn(int64(len(a.Raw)))
	h.changed(p)
	h.touch(p)
	return nil
}

// store appends a body.
func (h *Hub) store(raw []byte) (machine.Ref, error) {
	s := &h.storing
	s.raws[0] = raw
	err := h.tx.Store(journal.Ordinary, s.raws[:], s.refs[:])
	s.raws[0] = nil
	return s.refs[0], err
}

// sealFor seals the open block of a partition if body cannot become part of it: the block
// is full, or the journal has gone on to another segment.
func (h *Hub) sealFor(p *partition, body machine.Ref) error {
	first, last, some := p.m.Open()
	for some && !h.tx.SameSegment(first, last) { // a record that sealed a block was lost
		h.tx.WriteAs(p.unit)
		p.m.SealFirst(&h.eff)
		h.changed(p)
		first, last, some = p.m.Open()
	}
	if !some || h.tx.SameSegment(first, body) && !p.m.MustSeal(h.tx.Now(), body.Size) {
		return nil
	}
	s := &h.storing
	s.index = p.m.AppendIndex(s.index[:0])
	index, err := h.store(s.index)
	if err != nil {
		return err
	}
	h.tx.WriteAs(p.unit)
	p.m.Seal(index, &h.eff)
	h.changed(p)
	return nil
}
