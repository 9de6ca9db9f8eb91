// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/stream"
)

// The first bytes of records, as they are on disk.
const (
	storedBody         = 1
	storedSnapshotUnit = 9
)

// losing is a journal of which a repair has dropped one record.
type losing struct {
	journal.Journal
	lost journal.Position // zero is none
	all  []journal.Record // but for bodies
}

func (l *losing) Claim(ctx context.Context, shards ...journal.Shard) ([]journal.Claim, iter.Seq2[journal.Record, error], error) {
	claims, records, err := l.Journal.Claim(ctx, shards...)
	return claims, func(yield func(journal.Record, error) bool) {
		for rec, err := range records {
			if err == nil && rec.Payload[0] != storedBody {
				l.all = append(l.all, journal.Record{At: rec.At, Payload: []byte(string(rec.Payload))})
			}
			if rec.At == l.lost {
				rec = journal.Record{Shard: rec.Shard, Lost: 1}
			}
			if !yield(rec, err) {
				return
			}
		}
	}, err
}

// batches is what was appended to each partition, by the first event.
type batches [2]map[stream.SeqNo]string

func (sent *batches) put(r *rig, rng *rand.Rand, n int) {
	r.t.Helper()
	for range n {
		p := rng.IntN(len(sent))
		raw := strings.Repeat(fmt.Sprintf("%d of %d ", len(sent[p]), p), 1+rng.IntN(100))
		seq, err := r.try(&Append{Partition: p, Count: 1 + rng.IntN(3), Raw: []byte(raw)})
		if err != nil {
			r.t.Fatal(err)
		}
		sent[p][seq] = raw
	}
}

// read reads a partition, checks it against what was sent, and returns the first events of
// the batches.
func (sent *batches) read(r *rig, p int) map[stream.SeqNo]bool {
	r.t.Helper()
	r.check()
	x := r.reader(ReaderOptions{Partition: p, Group: "check"})
	defer func() {
		x.Close()
		r.step()
	}()
	found := map[stream.SeqNo]bool{}
	for {
		got, err := r.next(x, 1<<20)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(got) == 0 {
			break
		}
		for _, b := range got {
			if want := sent[p][b.First]; want != string(b.Raw) || found[b.First] {
				r.t.Fatalf("partition %d: event %d is %.30q, want %.30q", p, b.First, b.Raw, want)
			}
			found[b.First] = true
		}
	}
	for block, sealed, _ := r.h.partitions[p].m.Find(0); sealed; block, sealed, _ = r.h.partitions[p].m.Find(block.End) {
		x.answer.block = block
		all, err := x.loadIndex(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		for _, b := range all {
			if b.Body.At/segmentSize != block.Bodies.At/segmentSize {
				r.t.Fatalf("partition %d: a body of block %v is in segment %d", p, block, b.Body.At/segmentSize)
			}
		}
	}
	return found
}

// One record is lost, whichever it is. Of the events, only those that it alone tells of are
// lost with it. What is there, and what comes later, stays, also if the hub crashes before
// its next snapshot.
func TestAHubGoesOnWithoutALostRecord(t *testing.T) {
	for seed := range uint64(4) {
		if raceEnabled && seed < 2 {
			continue // for the sake of time
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t, Settings{Partitions: 2})
		sent := &batches{{}, {}}
		sent.put(r, rng, 150+rng.IntN(100))
		r.h.Engine.Manual().BeginSnapshot()
		r.settle()
		if seed%2 == 0 {
			sent.put(r, rng, 100) // into the next segment, without another snapshot
		} else {
			sent.put(r, rng, 5) // so few that the next life does not begin with a snapshot
		}
		var claimed *losing
		again := func(lost journal.Position) *rig {
			after := &rig{t: t, disk: r.disk.CrashClone(1), set: r.set, now: r.now}
			after.opts.Go = func(_ journal.Shard, f func()) { after.background = append(after.background, f) }
			after.fs = after.disk
			after.wrap = func(j journal.Journal) journal.Journal {
				claimed = &losing{Journal: j, lost: lost}
				return claimed
			}
			after.open()
			after.settle()
			return after
		}
		again(0)
		for _, rec := range claimed.all {
			loseOne(t, again(rec.At), rng, &batches{maps.Clone(sent[0]), maps.Clone(sent[1])}, rec)
			if t.Failed() {
				t.Fatalf("seed %d, without %x", seed, rec.Payload[:min(len(rec.Payload), 20)])
			}
		}
	}
}

func loseOne(t *testing.T, r *rig, rng *rand.Rand, sent *batches, rec journal.Record) {
	var left batches
	for p := range sent {
		if lost := len(sent[p]) - len(sent.read(r, p)); lost > 1 && rec.Payload[0] != storedSnapshotUnit {
			t.Errorf("%d batches are lost of partition %d", lost, p)
		}
	}
	keep := func(when string) {
		for p := range sent {
			found := sent.read(r, p)
			for seq := range left[p] {
				if !found[seq] {
					t.Fatalf("%s: event %d of partition %d is gone; %v", when, seq, p, r.damages)
				}
			}
		}
	}
	remember := func() {
		for p := range sent {
			left[p] = map[stream.SeqNo]string{}
			for seq := range sent.read(r, p) {
				left[p][seq] = ""
			}
		}
	}
	sent.put(r, rng, 5)
	remember()
	r.crash(1)
	r.settle()
	keep("after a crash")
	for range 2 {
		sent.put(r, rng, 60)
		r.h.Engine.Manual().BeginSnapshot()
		r.settle()
	}
	keep("after snapshots")
	remember()
	r.wrap = nil
	r.crash(2)
	r.settle()
	keep("without what was lost")
}
