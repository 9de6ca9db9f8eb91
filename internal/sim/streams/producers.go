// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/streamserver"
)

// window is how many batches of a producer are under way at most: fewer than a partition
// remembers.
const window = 4

// producer sends batches to a partition, each once, or again until it is acknowledged.
type producer struct {
	partition int
	idem      bool
	as        streamserver.Producer // of an idempotent one; Seq is that of its last event
	opened    bool
	opening   bool
	unacked   []*sent // oldest first
	recent    []*sent // that were acknowledged
	flying    int     // batches that were sent and not answered
	broken    bool    // one was refused: those behind it may be out of order
}

// sent is a batch of a producer.
type sent struct {
	*batch
	seq    int32
	flying int // how often it was sent and not answered
}

// produce has a producer send something, or makes a new one.
func (w *world) produce() {
	if len(w.producers) < 2 || len(w.producers) < 8 && w.chance(20) {
		w.producers = append(w.producers, &producer{
			partition: w.rng.IntN(w.hub.Manual().Partitions()), idem: w.chance(2),
			as: streamserver.Producer{ID: -1, Epoch: -1, Seq: -1},
		})
	}
	p := w.producers[w.rng.IntN(len(w.producers))]
	switch {
	case !p.idem:
		w.send(p, &sent{batch: w.newBatch(p.partition)})
	case !p.opened:
		w.openProducer(p)
	case p.broken:
		if p.flying == 0 { // everything again, in order
			p.broken = false
			for _, s := range p.unacked {
				w.send(p, s)
			}
		}
	case w.chance(6) && len(p.unacked)+len(p.recent) > 0: // sent twice
		all := append(append([]*sent(nil), p.recent...), p.unacked...)
		w.result.Again++
		w.send(p, all[w.rng.IntN(len(all))])
	case len(p.unacked) < window:
		s := &sent{batch: w.newBatch(p.partition), seq: p.as.Seq + 1}
		p.as.Seq += int32(s.count)
		p.unacked = append(p.unacked, s)
		w.send(p, s)
	}
}

func (w *world) newBatch(partition int) *batch {
	w.bodies++
	size := w.pick(30, 200, 1000, 3000)
	b := &batch{raw: fmt.Sprintf("batch %d %0*d", w.bodies, size, 0), count: 1 + w.rng.IntN(5), first: -1, asked: w.now}
	w.logs[partition].sent[b.raw] = b
	return b
}

// openProducer opens an idempotent producer, for the first time or again.
func (w *world) openProducer(p *producer) {
	if p.opening {
		return
	}
	p.opening = true
	asked := p.as
	asked.Seq = -1
	if p.as.ID >= 0 && len(p.unacked) == 0 && w.chance(3) { // and steals it from itself
		asked.Epoch++
		p.as.Epoch, p.recent = asked.Epoch, nil // also if the answer is lost
	}
	acked, last := p.lastAcked(), p.as.Seq
	err := w.hub.Manual().OpenProducer(p.partition, &asked, func(got streamserver.Producer, err error) {
		p.opening = false
		if errors.Is(err, streamserver.ErrDiskFull) && w.result.Full > 0 { // it takes a while to be over
			return
		}
		if err != nil || asked.ID >= 0 && got.ID != asked.ID || asked.Epoch >= 0 && got.Epoch != asked.Epoch {
			w.failf("opened producer %+v as %+v: %v", asked, got, err)
			return
		}
		if asked.ID >= 0 && (got.Seq < acked || got.Seq > last) {
			w.failf("producer %+v has published up to %d, not between %d and %d", asked, got.Seq, acked, last)
		}
		p.as.ID, p.as.Epoch, p.opened = got.ID, got.Epoch, true
		if len(p.unacked) == 0 {
			p.as.Seq = got.Seq
		}
		p.broken = len(p.unacked) > 0
		w.event("producer %+v of partition %d", got, p.partition)
	})
	if err != nil {
		w.failf("open a producer: %v", err)
	}
}

// lastAcked returns the number of the last event that is certain to be published.
func (p *producer) lastAcked() int32 {
	if len(p.unacked) > 0 {
		return p.unacked[0].seq - 1
	}
	return p.as.Seq
}

// send sends a batch.
func (w *world) send(p *producer, s *sent) {
	a := &streamserver.Append{Partition: p.partition, Raw: []byte(s.raw), Count: s.count}
	if p.idem {
		a.Producer = &streamserver.Producer{ID: p.as.ID, Epoch: p.as.Epoch, Seq: s.seq}
	}
	p.flying++
	s.flying++
	wasBroken := p.broken
	a.Done = func(first stream.SeqNo, err error) {
		p.flying--
		s.flying--
		w.sentOut(p, s, wasBroken, first, err)
	}
	w.hub.Append(a)
}

// sentOut takes the answer to a batch.
func (w *world) sentOut(p *producer, s *sent, wasBroken bool, first stream.SeqNo, err error) {
	w.event("sent %.12s: %d, %v", s.raw, first, err)
	switch {
	case err == nil:
		if why := w.logs[p.partition].learn(s.batch, first); why != "" {
			w.failf("partition %d: %.12s is acknowledged as event %d: %s", p.partition, s.raw, first, why)
		}
		w.result.Events += s.count
		p.acked(s)
	case errors.Is(err, streamserver.ErrDiskFull), errors.Is(err, streamserver.ErrBusy):
		if errors.Is(err, streamserver.ErrDiskFull) && w.result.Full == 0 {
			w.failf("refused on a disk that was never full: %v", err)
		}
		p.broken = true
	case errors.Is(err, streamserver.ErrOutOfOrder) && p.idem && (p.broken || wasBroken):
	default:
		w.failf("partition %d: %.12s: %v", p.partition, s.raw, err)
	}
}

// acked takes a batch out of those that are not acknowledged.
func (p *producer) acked(s *sent) {
	for i, x := range p.unacked {
		if x == s {
			p.unacked = append(p.unacked[:i:i], p.unacked[i+1:]...)
			p.recent = append(p.recent, s)
			break
		}
	}
	if len(p.recent) > 1 { // those under way come behind them
		p.recent = p.recent[len(p.recent)-1:]
	}
}
