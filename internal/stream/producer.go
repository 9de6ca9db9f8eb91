// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"math"
	"slices"

	"github.com/triagemq/triagemq/internal/machine"
)

// Producer is an idempotent producer of a partition: a batch that it sends twice is
// stored once.
type Producer struct {
	ID    int64
	Epoch int16 // of two producers with one id the one with the higher epoch stays
	Seq   int32 // of the first event of a batch; after the highest number comes 0
}

const (
	// maxProducers is how many producers a partition remembers. A peer can make as many
	// as it likes; the one that was unused longest is forgotten.
	maxProducers = 256
	// recentBatches is how many batches of a producer are recognized when they come
	// again. A client resends what was not acknowledged, and has few of those.
	recentBatches = 5

	// ProducerCost is about how much memory a producer takes.
	ProducerCost = 400
)

// producers are what a partition knows of its producers, longest unused first. It is a
// list: there are few, and the one that sends is usually at the end.
type producers struct {
	list     []*producer
	assigned int64 // the last id that was given to a producer that had none
}

// producer is what is known of one.
type producer struct {
	id     int64
	epoch  int16
	last   int32  // number of its last event
	recent []sent // its last batches, oldest first; none since it was opened
}

// sent is a batch of a producer.
type sent struct {
	seq   int32 // of its first event, by the producer
	count uint32
	first SeqNo // of its first event, by the partition
}

// advance returns the number that comes n events after seq.
func advance(seq int32, n uint32) int32 {
	return int32((uint64(seq) + uint64(n)) & math.MaxInt32)
}

func (ps *producers) find(id int64) int {
	for i := len(ps.list) - 1; i >= 0; i-- {
		if ps.list[i].id == id {
			return i
		}
	}
	return -1
}

// use returns a producer, which has been used last from now on. It is made if there is
// none.
func (ps *producers) use(id int64) *producer {
	i := ps.find(id)
	var x *producer
	switch {
	case i >= 0:
		x = ps.list[i]
		ps.list = slices.Delete(ps.list, i, i+1)
	case len(ps.list) >= maxProducers:
		x = ps.list[0]
		*x = producer{id: id, recent: x.recent[:0]}
		ps.list = slices.Delete(ps.list, 0, 1)
	default:
		x = &producer{id: id}
	}
	ps.list = append(ps.list, x)
	return x
}

// check tells whether a producer may append count events. A batch that it has sent before
// is known by its number.
func (ps *producers) check(p Producer, count uint32) (first SeqNo, again bool, err error) {
	i := ps.find(p.ID)
	if i < 0 || p.Seq < 0 {
		return 0, false, ErrOutOfOrder
	}
	x := ps.list[i]
	switch {
	case p.Epoch < x.epoch:
		return 0, false, ErrProducerStolen
	case p.Epoch > x.epoch:
		return 0, false, ErrOutOfOrder
	case len(x.recent) == 0: // it begins where it likes
		return 0, false, nil
	case p.Seq == advance(x.last, 1):
		return 0, false, nil
	}
	for _, s := range x.recent {
		if s.seq == p.Seq && s.count == count {
			return s.first, true, nil
		}
	}
	return 0, false, ErrOutOfOrder
}

// note remembers a batch that was appended.
func (ps *producers) note(p Producer, count uint32, first SeqNo) {
	x := ps.use(p.ID)
	if p.Epoch != x.epoch {
		x.epoch, x.recent = p.Epoch, x.recent[:0]
	}
	x.last = advance(p.Seq, count-1)
	if len(x.recent) == recentBatches {
		x.recent = slices.Delete(x.recent, 0, 1)
	}
	x.recent = append(x.recent, sent{p.Seq, count, first})
}

// open begins a producer. It returns what is asked with what is missing in it.
func (ps *producers) open(asked Producer) (Producer, error) {
	got := Producer{ID: asked.ID, Epoch: max(asked.Epoch, 0), Seq: max(asked.Seq, 0)}
	if got.ID < 0 {
		for got.ID = ps.assigned + 1; ps.find(got.ID) >= 0; got.ID++ {
		}
		return got, nil
	}
	i := ps.find(got.ID)
	if i < 0 {
		return got, nil
	}
	x := ps.list[i]
	switch {
	case asked.Epoch < 0 || got.Epoch == x.epoch:
		got.Epoch, got.Seq = x.epoch, x.last
	case got.Epoch < x.epoch:
		return Producer{}, ErrProducerStolen
	case asked.Seq < 0:
		got.Seq = x.last
	}
	return got, nil
}

// opened remembers a producer that was opened.
func (ps *producers) opened(p Producer, assigned int64) {
	ps.assigned = assigned
	x := ps.use(p.ID)
	if p.Epoch != x.epoch {
		x.recent = x.recent[:0]
	}
	x.epoch, x.last = p.Epoch, p.Seq
}

// OpenProducer begins an idempotent producer. A negative number in asked is none. The
// result has the number of the last event that it published.
func (p *Partition) OpenProducer(asked Producer, out *machine.Effects) (Producer, error) {
	got, err := p.producers.open(asked)
	if err != nil {
		return Producer{}, err
	}
	assigned := p.producers.assigned
	if asked.ID < 0 {
		assigned = got.ID
	}
	out.Begin(kindProducer)
	writeProducer(out, got)
	out.Uint(uint64(assigned))
	out.End()
	p.producers.opened(got, assigned)
	return got, nil
}

// Producers returns how many producers the partition remembers.
func (p *Partition) Producers() int { return len(p.producers.list) }

// AddsProducer reports whether OpenProducer would make the partition remember one more.
func (p *Partition) AddsProducer(asked Producer) bool {
	return len(p.producers.list) < maxProducers && p.producers.find(asked.ID) < 0
}

// ReplaceProducer is OpenProducer of one without an id that makes the partition remember no
// more than before: it gets the id of the one that was unused longest, with a higher epoch.
func (p *Partition) ReplaceProducer(asked Producer, out *machine.Effects) (Producer, error) {
	for _, x := range p.producers.list {
		if x.epoch < math.MaxInt16 {
			asked.ID, asked.Epoch, asked.Seq = x.id, x.epoch+1, max(asked.Seq, 0)
			break
		}
	}
	return p.OpenProducer(asked, out)
}
