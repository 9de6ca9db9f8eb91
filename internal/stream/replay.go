// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"
	"math"

	"github.com/triagemq/triagemq/internal/machine"
)

// restore is how far a replay has come.
type restore struct {
	begun   bool // there was a record, or a command
	loading bool // within the snapshot that the history begins with
	tolerance
}

// Restored implements [machine.Machine].
func (p *Partition) Restored() bool { return !p.restore.loading }

// Replay implements [machine.Machine]. A partition begins with its creation or with a
// snapshot; a later snapshot says nothing new.
func (p *Partition) Replay(rec []byte, out *machine.Effects) error {
	if len(rec) == 0 {
		return fmt.Errorf("%w: empty", errCorrupt)
	}
	kind, in := rec[0], machine.NewReader(rec[1:])
	r := &in
	err := p.replay(kind, r, out)
	p.restore.begun = true
	switch {
	case err != nil:
	case r.Bad():
		err = fmt.Errorf("%w: kind %d is cut short or out of range", errCorrupt, kind)
	case r.Len() > 0:
		err = fmt.Errorf("%w: kind %d has %d bytes too many", errCorrupt, kind, r.Len())
	}
	return err
}

func (p *Partition) replay(kind byte, r *machine.Reader, out *machine.Effects) error {
	switch kind {
	case kindBlocks:
		return p.replayBlocks(r, out)
	case kindState:
		return p.replayState(r, out)
	}
	if p.restore.loading && !p.restore.on { // the rest of the snapshot shows it
		r.Take(uint64(r.Len()))
		return nil
	}
	if !p.restore.begun && kind != kindCreated && !p.restore.on {
		return fmt.Errorf("%w: kind %d before the partition was created", errCorrupt, kind)
	}
	switch kind {
	case kindCreated:
		if p.next > 0 && !p.restore.on {
			return fmt.Errorf("%w: created twice", errCorrupt)
		}
		p.restore.uncertain = p.restore.uncertain && p.next > 0 // it has given none
	case kindAppend:
		return p.replayAppend(readBatch(r), nil, r, out)
	case kindAppendBy:
		b, by := readBatch(r), readProducer(r)
		return p.replayAppend(b, &by, r, out)
	case kindSeal:
		return p.replaySeal(readBlock(r, &Block{}), r, out)
	case kindTrim:
		return p.replayTrim(readSeq(r), r, out)
	case kindProducer:
		by, assigned := readProducer(r), int64(r.UpTo(math.MaxInt64))
		if !r.Bad() {
			p.producers.opened(by, assigned)
		}
	default:
		return fmt.Errorf("%w: unknown kind %d", errCorrupt, kind)
	}
	return nil
}

func (p *Partition) replayAppend(b Batch, by *Producer, r *machine.Reader, out *machine.Effects) error {
	if r.Bad() {
		return nil
	}
	if b.Body.At <= p.lastBody() {
		return fmt.Errorf("%w: batch of event %d is stored before the last one", errCorrupt, b.First)
	}
	if b.First != p.next {
		if ok, err := p.gap(b.First, "batch at event %d", b.First); !ok {
			return err
		}
	}
	p.restore.uncertain = false // no other was given before it
	if by != nil {
		p.producers.note(*by, b.Count, b.First)
	}
	p.add(b, out)
	return nil
}

// lastBody returns the place of the newest body that is known; zero if there is none.
func (p *Partition) lastBody() uint64 {
	if n := len(p.open); n > 0 {
		return p.open[n-1].Body.At
	}
	return p.lastBlock().Bodies.At
}

// lastBlock returns the newest block; the zero value if there is none.
func (p *Partition) lastBlock() Block {
	if sealed := p.blocks.list(); len(sealed) > 0 {
		return sealed[len(sealed)-1]
	}
	return Block{}
}

func (p *Partition) replaySeal(b Block, r *machine.Reader, out *machine.Effects) error {
	if r.Bad() {
		return nil
	}
	if n := min(Holding(p.open, b.End-1)+1, len(p.open)); n > 0 && blockOf(p.open[:n], b.Index) == b {
		p.seal(b, n, out)
		return nil
	}
	return p.sealAnyway(b, out)
}

func (p *Partition) replayTrim(keep SeqNo, r *machine.Reader, out *machine.Effects) error {
	if r.Bad() {
		return nil
	}
	before := p.First()
	p.trim(keep, out)
	if p.First() != keep || keep == before {
		return p.trimAnyway(keep)
	}
	return nil
}

// replayBlocks takes a piece of the snapshot that the history begins with.
func (p *Partition) replayBlocks(r *machine.Reader, out *machine.Effects) error {
	known, err := p.beginPiece(r.Flags(flagFirst), r, out)
	if known || err != nil {
		r.Take(uint64(r.Len()))
		return err
	}
	last := &Block{}
	for r.Len() > 0 {
		b := readBlock(r, last)
		if r.Bad() {
			return nil
		}
		last = &b
		if p.restore.on { // commands may have shown it
			if err := p.sealAnyway(b, out); err != nil {
				return err
			}
			continue
		}
		if !b.follows(p.lastBlock()) {
			return fmt.Errorf("%w: block of event %d is out of order", errCorrupt, b.First)
		}
		p.blocks.push(b)
		p.bytes += b.bytes()
		p.next, p.last = b.End, b.To
		out.Added = append(out.Added, b.Bodies, b.Index)
	}
	return nil
}

// beginPiece prepares for a piece of a snapshot, and reports whether its content is known.
func (p *Partition) beginPiece(flags byte, r *machine.Reader, out *machine.Effects) (known bool, err error) {
	s := &p.restore
	switch {
	case r.Bad():
		return false, nil
	case s.begun && !s.loading:
		return true, nil
	case flags&flagFirst == 0 && !s.loading && !s.on:
		return false, fmt.Errorf("%w: a snapshot without its beginning", errCorrupt)
	case flags&flagFirst != 0 && s.loading: // the one before has no end
		p.trim(maxSeq, out)
	}
	s.loading = true
	return false, nil
}

// replayState takes the last piece of a snapshot.
func (p *Partition) replayState(r *machine.Reader, out *machine.Effects) error {
	known, err := p.beginPiece(r.Flags(flagFirst), r, out)
	if err != nil {
		return err
	}
	first, next, last := readSeq(r), readSeq(r), readMillis(r)
	p.restore.uncertain = false // it has the number of the next event
	if known {
		p.atLeast(next)
		r.Take(uint64(r.Len()))
		return nil
	}
	open := readBatches(r, nil)
	list := readProducers(r)
	if r.Bad() {
		return nil
	}
	p.restore.loading, p.restore.missing, p.restore.gaps = false, 0, nil
	p.forgetOpen(out)
	p.trim(first, out)
	for _, b := range open {
		p.add(b, out)
	}
	p.next, p.last, p.producers = next, last, list
	if err := p.Check(); err != nil {
		return fmt.Errorf("%w: %w", errCorrupt, err)
	}
	if p.First() != first && !p.restore.on {
		return fmt.Errorf("%w: begins with event %d, not %d", errCorrupt, p.First(), first)
	}
	return nil
}

func readProducers(r *machine.Reader) (ps producers) {
	ps.assigned = int64(r.UpTo(math.MaxInt64))
	for range r.UpTo(maxProducers) {
		by := readProducer(r)
		x := &producer{id: by.ID, epoch: by.Epoch, last: by.Seq}
		for range r.UpTo(recentBatches) {
			x.recent = append(x.recent, sent{int32(r.UpTo(math.MaxInt32)), r.Uint32(), readSeq(r)})
		}
		if r.Bad() {
			break
		}
		ps.list = append(ps.list, x)
	}
	return ps
}
