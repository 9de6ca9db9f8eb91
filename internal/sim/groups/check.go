// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"bytes"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/streamserver"
)

// known is what the outside knows about a partition.
type known struct {
	epoch   int64            // the highest that was told
	told    map[int64]string // to whom
	low     stream.SeqNo     // the checkpoint is not before it
	rewinds int              // that were asked for
}

func newKnown() known { return known{told: map[int64]string{}, low: -1} }

// rewinding notes that the checkpoint may be there from now on, or stay as it is.
func (k *known) rewinding(to stream.SeqNo) {
	k.rewinds++
	k.low = min(k.low, to)
}

// crash takes the power away. What was not durable may be lost, and those who waited hear
// nothing. The processes go on, without a connection.
func (w *world) crash() {
	w.result.Crashes++
	w.countTaken()
	w.result.Snapshots += int(w.hub.Snapshots())
	w.event("crash")
	w.disk = w.disk.CrashClone(w.rng.Uint64())
	for _, p := range w.processes {
		p.member, p.joining = nil, false
		for _, h := range p.has {
			h.releasing = false
		}
	}
	if w.open(); w.err != nil {
		return
	}
	w.result.Snapshots -= int(w.hub.Snapshots())
	w.checkClaims()
	g := w.hub.Manual().Groups()
	if g == nil {
		return
	}
	for n, x := range g.Info(w.now, grp).Partitions {
		k := &w.parts[n]
		if x.Epoch < k.epoch {
			w.failf("partition %d: epoch %d after a crash, and %d was told", n, x.Epoch, k.epoch)
		}
		if k.low >= 0 && (x.Checkpoint == nil || x.Checkpoint.SeqNo < k.low) {
			w.failf("partition %d: checkpoint %+v after a crash, and %d was accepted", n, x.Checkpoint, k.low)
		}
	}
}

// state is everything of the groups that a restart must find again.
func state(h *streamserver.Hub) []byte {
	g := h.Manual().Groups()
	if g == nil {
		return nil
	}
	var out machine.Effects
	snap := g.Snapshot()
	for !snap.Step(&machine.Budget{Items: 1000, Bytes: 1 << 20}, nil, &out) {
	}
	return bytes.Join(out.Records(), []byte("\n"))
}

// replays compares the hub with what its disk has.
func (w *world) replays() {
	if w.full {
		return
	}
	for same := 0; same < 2; same++ { // what time has made due may take a moment to be durable
		before := state(w.hub)
		if w.settle(); !bytes.Equal(before, state(w.hub)) {
			same = 0
		}
	}
	j, err := wal.Open(w.disk.CrashClone(w.rng.Uint64()), wal.Options{SegmentSize: w.segments})
	if err != nil {
		w.failf("open a copy of the journal: %v", err)
		return
	}
	other, err := streamserver.Open(w.ctx, j, 0, w.settings(), streamserver.Options{Go: func(journal.Shard, func()) {}})
	if err != nil {
		w.failf("open a copy: %v", err)
		return
	}
	if got, want := state(other), state(w.hub); !bytes.Equal(got, want) {
		w.failf("replayed:\n%x\nwant:\n%x", got, want)
	}
}

// quiet ends all trouble and checks that everything comes to rest as it should.
func (w *world) quiet() {
	if w.full {
		w.fill()
	}
	w.result.Quiet++
	w.event("quiet")
	for _, p := range w.processes {
		if p.silent {
			p.silent = false
			if p.member != nil {
				p.member.Gone()
			}
			p.member, p.has = nil, map[int]*held{}
		}
	}
	w.settle()
	w.calm(90 * time.Second) // longer than all cool-downs and revocations
	w.calm(5 * time.Second)  // those that have left come back
	w.balanced("all")
	if w.err != nil {
		return
	}
	before := w.moves()
	want := w.fewest()
	if want < 0 {
		return
	}
	extra := &process{id: "extra"}
	w.processes = append(w.processes, extra)
	w.calm(5 * time.Second)
	w.balanced("with one more")
	if got := w.moves() - before; got != want {
		w.failf("%d moves for one more member, want %d", got, want)
	}
	w.result.Moves += want
	w.leave(extra)
	w.calm(5 * time.Second)
	w.processes = w.processes[:len(w.processes)-1]
	w.balanced("after that has left")
	w.replays()
}

// calm lets time pass in which everybody does as they should.
func (w *world) calm(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end) && w.err == nil; {
		w.now = w.now.Add(100 * time.Millisecond)
		w.report()
		for _, p := range w.processes {
			switch {
			case p.member == nil && p.leaving && !p.joining: // it was about to leave anyway
				p.run, p.has = "", nil
			case p.member == nil && !p.leaving:
				w.join(p)
			}
			if p.member == nil {
				continue
			}
			for _, n := range slices.Sorted(keys(p.has)) {
				if h := p.has[n]; !h.RevokeBy.IsZero() {
					w.release(p, h, 0)
				}
			}
		}
		for range 3 {
			w.step()
			w.commit()
			for len(w.background) > 0 {
				w.work()
			}
		}
		w.step()
	}
	for _, p := range w.processes {
		if p.leaving && p.member == nil && p.run == "" {
			p.leaving = false
		}
	}
}

func keys(m map[int]*held) func(func(int) bool) {
	return func(yield func(int) bool) {
		for n := range m {
			if !yield(n) {
				return
			}
		}
	}
}

func (w *world) info() group.Info { return w.hub.Manual().Groups().Info(w.now, grp) }

func (w *world) moves() int { return int(w.info().Moves) }

// countTaken counts what was taken from an owner who did not release it.
func (w *world) countTaken() {
	if w.hub.Manual().Groups() == nil {
		return
	}
	for _, c := range w.info().Changes {
		if c.Why == "taken" {
			w.result.Taken++
		}
	}
}

// balanced checks that every partition has an owner who knows it, and that counts are even.
func (w *world) balanced(when string) {
	if w.err != nil || w.hub.Manual().Groups() == nil {
		return
	}
	info := w.info()
	if len(info.Members) == 0 {
		return
	}
	least, most := len(info.Partitions), 0
	for _, m := range info.Members {
		if !m.Connected || m.Leaving {
			w.failf("%s: member %+v", when, m)
		}
		least, most = min(least, m.Partitions), max(most, m.Partitions)
	}
	if most-least > 1 {
		w.failf("%s: some have %d partitions and some %d: %+v", when, least, most, info.Partitions)
	}
	for n, x := range info.Partitions {
		if x.State != group.Owned {
			w.failf("%s: partition %d is %s", when, n, x.State)
			return
		}
		for _, p := range w.processes {
			h := p.has[n]
			if (h != nil) != (p.id == x.Owner) || h != nil && h.Epoch != x.Epoch {
				w.failf("%s: partition %d is %+v, and %s believes %+v", when, n, x, p.id, h)
			}
		}
	}
}

// fewest returns how many partitions have to move if one more member comes; negative if
// there are none.
func (w *world) fewest() int {
	if w.hub.Manual().Groups() == nil {
		return -1
	}
	info := w.info()
	if len(info.Members) == 0 {
		return -1
	}
	return len(info.Partitions) / (len(info.Members) + 1)
}
