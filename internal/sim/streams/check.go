// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bytes"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/streamserver"
)

// crash takes the power away. What was not durable may be lost, and those who waited hear
// nothing.
func (w *world) crash() {
	w.result.Crashes++
	w.result.Snapshots += int(w.hub.Snapshots())
	w.event("crash")
	w.disk = w.disk.CrashClone(w.rng.Uint64())
	w.readers, w.groups, w.retention.pending = nil, map[groupKey]*group{}, nil
	for _, p := range w.producers {
		p.opened, p.opening, p.broken, p.flying = false, false, false, 0
	}
	if w.open(); w.err == nil {
		w.result.Snapshots -= int(w.hub.Snapshots()) // they are counted from the beginning
		w.audit()
	}
}

// finish comes to rest and checks everything.
func (w *world) finish() {
	if w.full {
		w.fill()
		w.now = w.now.Add(2 * time.Second)
		w.retention.pass(w.now)
	}
	w.settle()
	for _, x := range append([]*reader(nil), w.readers...) { // they get all there is
		for n := 0; n < 100 && w.err == nil; n++ {
			if w.readWith(x, 1<<20) == 0 && w.hub.Posted() == 0 {
				break
			}
			w.step()
		}
		_, end := w.hub.Manual().Partition(x.key.partition)
		if !x.closed && !x.stolen && x.next < end && w.first(x.key.partition) < end {
			w.failf("reader %s of %v waits for event %d, and %d are durable", x.name, x.key, x.next, end)
		}
	}
	w.replays()
	w.crash()
	w.aged()
}

func (w *world) first(partition int) stream.SeqNo {
	p, _ := w.hub.Manual().Partition(partition)
	return p.First()
}

// audit reads everything and compares it with what is known.
func (w *world) audit() {
	for n, l := range w.logs {
		if n >= w.hub.Manual().Partitions() {
			break
		}
		first, next := w.first(n), stream.SeqNo(-1)
		w.all(n, func(b streamserver.Batch) {
			if next < 0 {
				next = first
			}
			if b.First != next {
				w.failf("partition %d: event %d where %d is next", n, b.First, next)
			}
			w.saw(n, b.First, b.Count, string(b.Raw))
			next = b.First + stream.SeqNo(b.Count)
		})
		if next < 0 {
			next = first
		}
		if next < l.end {
			w.failf("partition %d: ends with event %d, and %d was known", n, next-1, l.end-1)
		}
		for seq := l.oldest; seq < first && w.err == nil; { // what is gone
			old := l.holding(seq)
			if old != nil && !w.retention.mayDrop(old.asked) {
				w.failf("partition %d: event %d is gone, of %v", n, seq, old.asked)
			}
			if seq++; old != nil {
				seq = max(seq, old.first+stream.SeqNo(old.count))
			}
		}
		l.oldest = max(l.oldest, first)
		w.event("partition %d: events %d to %d", n, first, next-1)
	}
}

// all reads a partition with a reader of its own.
func (w *world) all(partition int, fn func(streamserver.Batch)) {
	var r *streamserver.Reader
	err := w.hub.Manual().OpenReader(streamserver.ReaderOptions{Partition: partition, Group: "audit"}, func(x *streamserver.Reader, err error) {
		if r = x; err != nil {
			w.failf("audit: %v", err)
		}
	})
	if err != nil {
		w.failf("audit: %v", err)
	}
	for n := 0; r == nil && w.err == nil && n < 20; n++ {
		w.step()
		w.commit()
	}
	if r == nil {
		if !w.full {
			w.failf("audit: no reader")
		}
		return
	}
	defer r.Close()
	for w.err == nil {
		got, ready, err := r.Poll(w.ctx, 1<<20)
		if err != nil {
			w.failf("audit: %v", err)
		}
		if !ready && w.hub.Posted() == 0 {
			return
		}
		for _, b := range got {
			fn(b)
		}
		w.hub.Step(w.now)
	}
}

// replays compares the hub with what a replay of its disk makes.
func (w *world) replays() {
	w.settle()
	if w.full || w.err != nil {
		return // some of it may not be durable
	}
	done := false // an operation that is answered has everything before it made durable
	if err := w.hub.Manual().Configure(w.retention.set, func(error) { done = true }); err != nil {
		w.failf("configure: %v", err)
	}
	for n := 0; n < 100 && !done; n++ {
		w.step()
		w.commit()
	}
	w.result.Replays++
	j, err := wal.Open(w.disk.CrashClone(w.rng.Uint64()), wal.Options{SegmentSize: w.segments})
	if err != nil {
		w.failf("open a copy of the journal: %v", err)
		return
	}
	opts := w.options()
	opts.Go = func(journal.Shard, func()) {}
	h, err := streamserver.Open(w.ctx, j, 0, w.retention.set, opts)
	if err != nil {
		w.failf("open a copy of the hub: %v", err)
		return
	}
	if err := h.Check(); err != nil {
		w.failf("a copy of the hub: %v", err)
	}
	if got, want := h.Manual().Partitions(), w.hub.Manual().Partitions(); got != want {
		w.failf("a replay has %d partitions, want %d", got, want)
		return
	}
	for n := range h.Manual().Partitions() {
		got, end := h.Manual().Partition(n)
		want, wantEnd := w.hub.Manual().Partition(n)
		if !bytes.Equal(stateOf(got), stateOf(want)) || end != wantEnd {
			w.failf("partition %d: a replay has other state: events %d to %d, want %d to %d", n, got.First(), end-1, want.First(), wantEnd-1)
		}
	}
	w.event("replay")
}

// stateOf is everything that a partition writes into a snapshot.
func stateOf(p *stream.Partition) []byte {
	var out machine.Effects
	snap := p.Snapshot()
	for !snap.Step(&machine.Budget{Items: 1 << 30, Bytes: 1 << 30}, nil, &out) {
	}
	return bytes.Join(out.Records(), nil)
}

// aged checks that what has expired goes.
func (w *world) aged() {
	r := &w.retention
	if r.longest == 0 || r.set.RetainFor == 0 || w.err != nil {
		return
	}
	w.settle()
	w.now = w.now.Add(r.set.RetainFor + r.longest + 2*time.Minute)
	r.pass(w.now)
	w.settle()
	for n := range w.hub.Manual().Partitions() {
		if p, end := w.hub.Manual().Partition(n); p.First() != end {
			w.failf("partition %d: events %d to %d are there long after their retention", n, p.First(), end-1)
		}
	}
}
