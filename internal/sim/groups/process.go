// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/streamserver"
)

// process is a member, and what it believes.
type process struct {
	id       string
	run      string               // "" while the process is not there
	member   *streamserver.Member // nil while it is not connected
	joining  bool
	silent   bool // it hears nothing and says nothing, but does its work
	leaving  bool
	stubborn bool // it releases nothing
	keep     time.Duration
	heard    time.Time // when it last reported
	current  bool      // it has heard what it has since it connected
	has      map[int]*held
}

// held is a partition that a process believes to have.
type held struct {
	group.Grant
	releasing bool
	again     bool         // it was told before, and its own checkpoints may be under way
	seq       stream.SeqNo // the last event that it has handled
}

// well reports whether a process is connected and reports: the hub must respect it.
func (p *process) well(now time.Time) bool {
	return p.member != nil && p.current && !p.silent && now.Sub(p.heard) < 10*time.Second
}

// report has those report who are well.
func (w *world) report() {
	for _, p := range w.processes {
		if p.member != nil && !p.silent && w.now.Sub(p.heard) >= 3*time.Second {
			if w.now.Sub(p.heard) >= 10*time.Second {
				p.current = false // it may have been given up
			}
			p.heard = w.now
			p.member.Report(streamserver.Report{})
		}
	}
}

// act has a process do something that processes do.
func (w *world) act(p *process) {
	switch {
	case p.member == nil:
		w.join(p)
	case len(p.has) == 0:
	default:
		h := w.one(p)
		if !h.RevokeBy.IsZero() && !p.stubborn && !p.silent {
			w.release(p, h, 0)
		} else if w.chance(30) && !p.stubborn && !p.silent {
			w.release(p, h, time.Duration(w.pick(0, 1, 20))*time.Second)
		} else {
			w.checkpoint(p, h)
		}
	}
}

// one returns a partition of a process.
func (w *world) one(p *process) *held {
	var numbers []int
	for n := range p.has {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return p.has[numbers[w.rng.IntN(len(numbers))]]
}

// join starts a process if it is not there, and connects it.
func (w *world) join(p *process) {
	if p.joining {
		return
	}
	if p.run == "" {
		w.runs++
		p.run, p.has, p.silent, p.leaving = fmt.Sprint("run", w.runs), map[int]*held{}, false, false
		p.stubborn = w.chance(3)
		p.keep = time.Duration(w.pick(0, 0, 5)) * time.Second
	}
	run := p.run
	p.joining, p.current, p.heard = true, false, w.now
	life := w.life
	w.event("%s joins with %s", p.id, run)
	var me *streamserver.Member
	there := func() bool { return life == w.life && p.run == run && (p.member == me || p.member == nil) }
	o := streamserver.MemberOptions{
		Group: grp, ID: p.id, Run: run, Keep: p.keep,
		Changed: func(a group.Assignment) {
			if there() {
				w.hears(p, a)
			}
		},
		Ended: func(err error) {
			if !there() {
				return
			}
			w.event("%s ended: %v", p.id, err)
			if errors.Is(err, group.ErrTaken) {
				w.failf("%s was taken by nobody", p.id)
			}
			if errors.Is(err, group.ErrLeft) != p.leaving && p.well(w.now) {
				w.failf("%s ended with %v, leaving %t", p.id, err, p.leaving)
			}
			if p.member = nil; p.leaving {
				p.run, p.has = "", nil
			} else if !p.silent {
				p.has = map[int]*held{} // a process that hears it stops its work
			}
		},
	}
	w.post(w.hub.Manual().Join(o, func(m *streamserver.Member, err error) {
		if life != w.life {
			return
		}
		if p.joining = false; err != nil {
			_ = w.answered("join", err)
			return
		}
		if p.run != run { // it has crashed meanwhile
			m.Gone()
			return
		}
		me = m
		if p.member = m; p.leaving { // the first time may not have been heard
			w.leave(p)
		}
	}))
}

// hears takes over an assignment.
func (w *world) hears(p *process, a group.Assignment) {
	if p.silent {
		return
	}
	has := map[int]*held{}
	for _, g := range a.Grants {
		if g.Epoch < 1 || g.Partition >= a.Partitions {
			w.failf("%s gets %+v", p.id, g)
		}
		before := p.has[g.Partition]
		if before == nil || before.Epoch != g.Epoch {
			_, again := w.parts[g.Partition].told[g.Epoch]
			w.granted(p, g, again)
			before = &held{seq: max(g.Checkpoint, -1), again: again}
		}
		before.Grant = g
		has[g.Partition] = before
	}
	p.has, p.current = has, true
	w.event("%s has %v", p.id, a.Grants)
}

// granted checks a grant that is new.
func (w *world) granted(p *process, g group.Grant, again bool) {
	k := &w.parts[g.Partition]
	w.result.Grants++
	who := p.id + " " + p.run
	if by, ok := k.told[g.Epoch]; ok && by != who {
		w.failf("partition %d: epoch %d is told to %s, and was to %s", g.Partition, g.Epoch, who, by)
	}
	if g.Epoch < k.epoch {
		w.failf("partition %d: epoch %d is told after %d", g.Partition, g.Epoch, k.epoch)
	}
	k.told[g.Epoch], k.epoch = who, max(k.epoch, g.Epoch)
	if g.Checkpoint < k.low && k.low >= 0 && !again {
		w.failf("partition %d: begins after %d, and %d was accepted", g.Partition, g.Checkpoint, k.low)
	}
	for _, other := range w.processes {
		h := other.has[g.Partition]
		if other == p || h == nil || h.releasing || !other.well(w.now) {
			continue
		}
		if h.RevokeBy.IsZero() || w.now.Before(h.RevokeBy) {
			w.failf("partition %d: %s gets it, and %s has it", g.Partition, p.id, other.id)
		}
	}
}

// release gives up a partition.
func (w *world) release(p *process, h *held, coolDown time.Duration) {
	if h.releasing {
		return
	}
	h.releasing = true
	w.event("%s releases %d of epoch %d", p.id, h.Partition, h.Epoch)
	w.post(w.hub.Manual().Release(grp, p.id, h.Partition, h.Epoch, coolDown, w.alive(func(err error) {
		_ = w.answered("release", err)
	})))
}

// checkpoint handles some events and says so.
func (w *world) checkpoint(p *process, h *held) {
	if h.releasing || h.seq >= events-1 {
		return
	}
	h.seq += stream.SeqNo(1 + w.rng.IntN(20))
	c := group.Checkpoint{Partition: h.Partition, Epoch: h.Epoch, SeqNo: min(h.seq, events-1)}
	back := false
	if w.chance(20) {
		c.SeqNo = stream.SeqNo(w.rng.IntN(int(c.SeqNo) + 1))
		back = true
	}
	k, life := &w.parts[h.Partition], w.life
	epoch, low := k.epoch, k.low
	rewinds := k.rewinds
	w.event("%s handled %d of %d, epoch %d", p.id, c.SeqNo, c.Partition, c.Epoch)
	w.post(w.hub.Manual().Checkpoint(grp, []group.Checkpoint{c}, func(errs []error, err error) {
		if life != w.life {
			return
		}
		if err != nil {
			_ = w.answered("checkpoint", err)
			return
		}
		switch {
		case errs[0] == nil:
			w.result.Accepted++
			if c.Epoch < epoch {
				w.failf("partition %d: a checkpoint of epoch %d is accepted after %d was told", c.Partition, c.Epoch, epoch)
			}
			if c.SeqNo < low && rewinds == k.rewinds {
				w.failf("partition %d: a checkpoint goes from %d back to %d", c.Partition, low, c.SeqNo)
			}
			if rewinds == k.rewinds {
				k.low = max(k.low, c.SeqNo)
			}
		case errors.Is(errs[0], group.ErrFenced):
			if w.result.Fenced++; p.silent {
				w.result.Zombies++
			}
		case errors.Is(errs[0], group.ErrBackwards) && (back || h.again || k.rewinds > 0):
		default:
			w.failf("checkpoint: %v", errs[0])
		}
	}))
}

// trouble has something happen to a process.
func (w *world) trouble(p *process) {
	switch w.rng.IntN(5) {
	case 0: // the connection is lost
		if p.member != nil && !p.silent {
			w.event("%s loses its connection", p.id)
			p.member.Gone()
			p.member = nil
		}
	case 1: // it crashes
		if p.run != "" && w.chance(2) {
			w.event("%s crashes", p.id)
			if p.member != nil {
				p.member.Gone()
			}
			p.member, p.run, p.has = nil, "", nil
		}
	case 2, 3: // it is stopped and continued
		if p.member != nil && (p.silent || w.chance(3)) {
			p.silent = !p.silent
			w.event("%s silent %t", p.id, p.silent)
			if !p.silent { // it finds that its connection is gone
				p.member.Gone()
				p.member, p.has = nil, map[int]*held{}
			}
		}
	default:
		if p.member != nil && !p.leaving && !p.silent && w.chance(2) {
			w.leave(p)
		}
	}
}

func (w *world) leave(p *process) {
	p.leaving = true
	w.event("%s leaves", p.id)
	w.post(w.hub.Manual().Leave(grp, p.id, w.alive(func(err error) { _ = w.answered("leave", err) })))
}

// answered checks an answer that is not what was wanted.
func (w *world) answered(what string, err error) error {
	switch {
	case err == nil, errors.Is(err, group.ErrFenced), errors.Is(err, group.ErrUnknownMember), errors.Is(err, group.ErrNotOwned), errors.Is(err, streamserver.ErrPartition):
	case errors.Is(err, streamserver.ErrDiskFull):
		w.result.Refused++
	default:
		w.failf("%s: %v", what, err)
	}
	return nil
}
