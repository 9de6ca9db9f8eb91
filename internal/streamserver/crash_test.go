// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/vfs"
)

// history is what the outside knows of a hub.
type history struct {
	acked [3]stream.SeqNo            // behind the last event that was acknowledged, for each partition
	sent  [3]map[stream.SeqNo]string // bodies of batches that were acknowledged or seen, by their first event
	at    [3]map[stream.SeqNo]time.Time
	last  [3]stream.SeqNo // of the batch that the producer of the partition sent last
	seq   [3]int32        // its number
}

func newHistory() *history {
	h := &history{}
	for p := range h.sent {
		h.sent[p], h.at[p] = map[stream.SeqNo]string{}, map[stream.SeqNo]time.Time{}
	}
	return h
}

func (h *history) clone() *history {
	c := *h
	for p := range h.sent {
		c.sent[p], c.at[p] = maps.Clone(h.sent[p]), maps.Clone(h.at[p])
	}
	return &c
}

// stateOf is everything that a partition writes into a snapshot.
func stateOf(p *stream.Partition) []byte {
	var out machine.Effects
	snap := p.Snapshot()
	for !snap.Step(&machine.Budget{Items: 1 << 30, Bytes: 1 << 30}, nil, &out) {
	}
	return bytes.Join(out.Records(), nil)
}

// retainFor is the retention of hubs that crash.
const retainFor = 20 * time.Second

// verify checks a hub that came back against what the outside knows.
func (h *history) verify(r *rig, when string) {
	r.t.Helper()
	r.settle()
	for p := range r.h.partitions {
		info := r.info(p)
		if info.Last+1 < h.acked[p] {
			r.t.Fatalf("%s: partition %d ends with event %d, %d were acknowledged", when, p, info.Last, h.acked[p])
		}
		if at, ok := h.at[p][info.First-1]; ok && r.now.Sub(at) < retainFor {
			r.t.Fatalf("%s: partition %d: event %d is gone after %v", when, p, info.First-1, r.now.Sub(at))
		}
		x := r.reader(ReaderOptions{Partition: p, Group: "verify"})
		next := info.First
		for {
			got, err := r.next(x, 1<<20)
			if err != nil {
				r.t.Fatalf("%s: %v", when, err)
			}
			if len(got) == 0 {
				break
			}
			for _, b := range got {
				if b.First != next {
					r.t.Fatalf("%s: partition %d: event %d, want %d", when, p, b.First, next)
				}
				if want, known := h.sent[p][b.First]; known && want != string(b.Raw) {
					r.t.Fatalf("%s: partition %d: another batch has event %d", when, p, b.First)
				}
				next = b.First + stream.SeqNo(b.Count)
			}
		}
		if next != info.Last+1 {
			r.t.Fatalf("%s: partition %d: read up to %d of %d", when, p, next, info.Last)
		}
		x.Close()
		r.step()
	}
	if len(r.damages) > 0 {
		r.t.Fatalf("%s: damages %v", when, r.damages)
	}
}

// play has producers and readers work, with retention, a partition that is added, and
// snapshots in between.
func play(r *rig, h *history) {
	producers := [3]Producer{}
	readers := [3]*Reader{}
	for i := range 220 {
		p := i % len(r.h.partitions)
		switch {
		case i == 60:
			r.set.Partitions = 3
			if _, err := run(r, func() (int, error) { return 0, r.h.Configure(r.t.Context(), r.set) }); err != nil {
				r.t.Fatal(err)
			}
		case i%40 == 30:
			r.idle(7 * time.Second)
		case i%5 == 4:
			if readers[p] == nil {
				readers[p] = r.reader(ReaderOptions{Partition: p, Group: "g"})
			}
			got, err := r.next(readers[p], 5000)
			if err != nil {
				r.t.Fatal(err)
			}
			for _, b := range got {
				h.sent[p][b.First] = string(b.Raw)
			}
		default:
			if h.seq[p] == 0 {
				producers[p], _ = run(r, func() (Producer, error) { return r.h.OpenProducer(r.t.Context(), p, nil) })
			}
			by := producers[p]
			by.Seq = h.seq[p] + 1
			count := 1 + i%3
			raw := fmt.Appendf(nil, "batch %d %0*d", i, 1500+i, i)
			seq, err := r.try(&Append{Partition: p, Count: count, Raw: raw, Producer: &by})
			if err != nil {
				r.t.Fatal(err)
			}
			h.sent[p][seq], h.at[p][seq+stream.SeqNo(count)-1] = string(raw), r.now
			h.acked[p] = seq + stream.SeqNo(count)
			h.last[p], h.seq[p] = seq, h.seq[p]+int32(count)
			r.now = r.now.Add(200 * time.Millisecond)
		}
	}
}

// TestCrashAtEveryWrite looks, before each call that changes the disk, at what a crash
// would leave there.
func TestCrashAtEveryWrite(t *testing.T) {
	set := Settings{Partitions: 2, RetainFor: retainFor}
	r := newRig(t, set)
	r.disk = r.disk.CrashClone(0)
	fault := vfs.NewFault(r.disk)
	r.fs = fault
	r.open()
	h := newHistory()
	points, every := 0, 1
	if raceEnabled {
		every = 7 // for the sake of time
	}
	fault.Before(func(op vfs.Op, _ string) error {
		switch op {
		case vfs.OpRead, vfs.OpList, vfs.OpOpen, vfs.OpLock:
			return nil
		}
		if points++; points%every != 0 {
			return nil
		}
		after := &rig{t: t, disk: r.disk.CrashClone(uint64(points)), set: r.set, now: r.now}
		after.fs, after.opts = after.disk, r.opts
		after.opts.Go = func(_ journal.Shard, f func()) { after.background = append(after.background, f) }
		after.opts.OnDamage = func(d Damage) { after.damages = append(after.damages, d) }
		after.open()
		h.clone().verify(after, fmt.Sprintf("%s, call %d", op, points))
		return nil
	})
	play(r, h)
	fault.Before(nil)
	if points < 300 || r.h.Snapshots() < 3 || r.info(0).First == 0 {
		t.Errorf("%d calls, %d snapshots, oldest event %d: not much was tried", points, r.h.Snapshots(), r.info(0).First)
	}
	r.settle()
	var live [][]byte
	for _, p := range r.h.partitions {
		live = append(live, stateOf(p.m))
	}
	r.crash(0)
	for i, p := range r.h.partitions {
		if !slices.Equal(live[i], stateOf(p.m)) {
			t.Errorf("partition %d is not what it was", i)
		}
	}
	// A batch that is sent again is still known.
	for p := range 3 {
		by := Producer{ID: 1, Seq: h.seq[p] - int32(h.acked[p]-h.last[p]) + 1}
		if seq, err := r.try(&Append{Partition: p, Count: int(h.acked[p] - h.last[p]), Raw: []byte("again"), Producer: &by}); err != nil || seq != h.last[p] {
			t.Errorf("partition %d: the last batch again: event %d, %v, want %d", p, seq, err, h.last[p])
		}
	}
}
