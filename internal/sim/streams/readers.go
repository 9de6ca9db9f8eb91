// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/streamserver"
)

type groupKey struct {
	partition int
	name      string
}

// group is who reads a partition for a consumer group, by the model.
type group struct {
	holder  *reader
	readers []*reader
}

// reader is a reader and what it must get next.
type reader struct {
	key    groupKey
	name   string
	epoch  int64 // negative is none
	r      *streamserver.Reader
	next   stream.SeqNo
	start  stream.Start
	begun  bool // next is known
	ended  error
	stolen bool // by the model
	closed bool
}

// openReader opens a reader. Which others end, and whether it is refused, is decided by
// the order in which readers are opened and closed, which is known here.
func (w *world) openReader() {
	x := &reader{
		key:   groupKey{w.rng.IntN(w.hub.Manual().Partitions()), fmt.Sprint("g", w.rng.IntN(2))},
		name:  fmt.Sprint("r", w.rng.IntN(1000)),
		epoch: int64(w.rng.IntN(5)) - 2,
	}
	_, end := w.hub.Manual().Partition(x.key.partition)
	switch w.rng.IntN(4) {
	case 0:
		x.start = stream.Latest()
	case 1:
		x.start = stream.FromSeq(stream.SeqNo(w.rng.Int64N(int64(end) + 1)))
	}
	want := w.admit(x)
	o := streamserver.ReaderOptions{Partition: x.key.partition, Group: x.key.name, Name: x.name, From: x.start,
		Ended: func(err error) {
			if x.ended = err; !x.stolen || !errors.Is(err, streamserver.ErrStolen) {
				w.failf("reader %s of %v ended: %v", x.name, x.key, err)
			}
		}}
	if x.epoch >= 0 {
		o.Epoch = &x.epoch
	}
	err := w.hub.Manual().OpenReader(o, func(r *streamserver.Reader, err error) {
		w.event("opened %s of %v: %v", x.name, x.key, err)
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			w.failf("opened %s with epoch %d of %v: %v, want %v", x.name, x.epoch, x.key, err, want)
			return
		}
		if err == nil {
			x.r, x.next = r, r.Position()
			w.readers = append(w.readers, x)
		}
	})
	if err != nil {
		w.failf("open a reader: %v", err)
	}
}

// admit is the table of epochs, once more.
func (w *world) admit(x *reader) error {
	g := w.groups[x.key]
	if g == nil {
		g = &group{}
		w.groups[x.key] = g
	}
	switch {
	case x.epoch >= 0 && g.holder != nil && x.epoch < g.holder.epoch:
		return streamserver.ErrStolen
	case x.epoch >= 0:
		for _, old := range g.readers {
			old.stolen = true
			w.result.Stolen++
		}
		if g.holder != nil {
			g.holder.stolen = true
			w.result.Stolen++
		}
		*g = group{holder: x}
	case g.holder != nil:
		return streamserver.ErrStolen
	case len(g.readers) >= 5:
		return streamserver.ErrReaders
	default:
		g.readers = append(g.readers, x)
	}
	return nil
}

func (w *world) someReader() *reader {
	if len(w.readers) == 0 {
		return nil
	}
	return w.readers[w.rng.IntN(len(w.readers))]
}

// closeReader closes a reader.
func (w *world) closeReader() {
	x := w.someReader()
	if x == nil || x.closed {
		return
	}
	x.closed = true
	x.r.Close()
	if g := w.groups[x.key]; g != nil && !x.stolen {
		if g.holder == x {
			g.holder = nil
		}
		for i, y := range g.readers {
			if y == x {
				g.readers = append(g.readers[:i:i], g.readers[i+1:]...)
				break
			}
		}
	}
	w.event("closed %s", x.name)
}

// read has a reader get what there is for it.
func (w *world) read() {
	if x := w.someReader(); x != nil {
		w.readWith(x, w.pick(1, 5000, 1<<20))
	}
}

// readWith returns how many batches a reader got.
func (w *world) readWith(x *reader, maxBytes int) int {
	got, ready, err := x.r.Poll(w.ctx, maxBytes)
	switch {
	case errors.Is(err, streamserver.ErrClosed) && x.closed, errors.Is(err, streamserver.ErrStolen) && x.stolen:
		w.forget(x)
		return 0
	case err != nil:
		w.failf("reader %s of %v: %v", x.name, x.key, err)
		return 0
	case !ready:
		return 0
	}
	l := w.logs[x.key.partition]
	_, end := w.hub.Manual().Partition(x.key.partition)
	for _, b := range got {
		w.got(x, l, b, end)
	}
	w.event("read %s of %v: %d batches up to %d", x.name, x.key, len(got), x.next)
	return len(got)
}

// got checks one batch that a reader got.
func (w *world) got(x *reader, l *log, b streamserver.Batch, end stream.SeqNo) {
	first := b.First + stream.SeqNo(b.Skip)
	if first < x.next {
		w.failf("reader %s of %v: event %d again, %d is next", x.name, x.key, first, x.next)
	}
	for seq := x.next; seq < first && w.err == nil; { // what it has skipped
		w.result.Skipped++
		old := l.holding(seq)
		if old != nil && !w.retention.mayDrop(old.asked) {
			w.failf("reader %s of %v: event %d is skipped, of %v", x.name, x.key, seq, old.asked)
		}
		if seq++; old != nil {
			seq = max(seq, old.first+stream.SeqNo(old.count))
		}
	}
	w.saw(x.key.partition, b.First, b.Count, string(b.Raw))
	x.next = b.First + stream.SeqNo(b.Count)
	if x.next > end {
		w.failf("reader %s of %v: event %d is not durable", x.name, x.key, x.next-1)
	}
	w.result.Read += b.Count - b.Skip
}

// saw takes over that a batch was seen.
func (w *world) saw(partition int, first stream.SeqNo, count int, raw string) {
	l := w.logs[partition]
	b := l.sent[raw]
	if b == nil || b.count != count {
		w.failf("partition %d: a batch that nobody has sent, with event %d: %.40q", partition, first, raw)
		return
	}
	if why := l.learn(b, first); why != "" {
		w.failf("partition %d: %.12s at event %d: %s", partition, raw, first, why)
	}
}

// holding returns the batch that is known to have an event; nil if none is.
func (l *log) holding(seq stream.SeqNo) *batch {
	for n := stream.SeqNo(0); n < 5; n++ {
		if b := l.known[seq-n]; b != nil && b.first+stream.SeqNo(b.count) > seq {
			return b
		}
	}
	return nil
}

// forget drops a reader that has ended.
func (w *world) forget(x *reader) {
	for i, y := range w.readers {
		if y == x {
			w.readers = append(w.readers[:i:i], w.readers[i+1:]...)
			return
		}
	}
}
