// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/triagemq/triagemq/internal/journal"
)

// The decision to take a snapshot.
//
// A snapshot costs its size S in writing and gains two things: the shard's own
// history before it need not be replayed, and blocks that hold nothing alive can
// be freed. A shard looks at what it wrote itself, at what it keeps without need,
// and, if its history begins first, at how much of everybody's log it holds back:
//
//	own     >= max(A, 2 S)        records since the last snapshot: replay is long
//	garbage >= max(A, 2 S)        bodies freed since then, and more than half
//	                              of what is kept is dead
//	heldBack >= 2 T + A           the log that waits for it; T is the sum of S over all
//	                              shards
//
// A is Options.SnapshotAfter. While the shard is quiet it is an eighth of that, and
// at most two blocks: a small disk has small ones, and what a drained store keeps is
// a small part of it. What snapshots write counts in none of the first two, and a round of snapshots by all
// shards writes T: after it the third is at most T until T + A more bytes have come.
// So snapshots never trigger each other, and an idle broker comes to rest.
//
// While the disk is full a snapshot is paid for out of the reserve, and the only
// thing that counts is what it frees. C is S and the bodies that it moves:
//
//	gain    >= C + max(C/8, A/64) bytes of blocks in which nothing of the shard is
//	                              alive, or which are kept because of it
//	space   >= C + C/8            it can be finished
//
// One in progress when the disk becomes full, for which that does not hold, is
// given up. The reserve is twice S: the records of a snapshot can be freed only
// when the next one is there.
//
// The bound on what is written: for each byte that a shard appends, half a byte of
// its snapshots by the first rule, half by the second (a byte is freed once), one
// by the third, and one of bodies moved, because a block is given up only while
// less than half of it lives, or of the share of each shard that keeps it. A broker writes at most four times what its clients
// make it write, and typically 1.1 times.
type upkeep struct {
	after   uint64 // Options.SnapshotAfter
	block   uint64 // size of a block of the log
	own     uint64 // bytes of records since the last snapshot began, its own not counted
	size    uint64 // of a snapshot: S
	garbage uint64 // bytes of bodies freed since the last snapshot began
	written uint64 // bytes in the blocks that the shard keeps
	live    uint64 // of them
	log     journal.Usage
	quiet   bool   // the shard has written nothing for a while
	full    bool   // the disk is full
	gain    uint64 // while it is: the bytes that a snapshot frees
	moved   uint64 // and those of the bodies that it moves
}

// shouldSnapshot reports whether it is time for a snapshot.
func (u upkeep) shouldSnapshot() bool {
	if u.full {
		cost := u.size + u.moved
		return u.gain >= cost+max(cost/8, u.after/64) && u.log.Available >= cost+cost/8
	}
	after := u.after
	if u.quiet {
		after = min(after/8, 2*u.block)
	}
	need := max(after, 2*u.size)
	return u.own >= need ||
		u.garbage >= need && u.written > 2*u.live+after ||
		u.log.HeldBack >= 2*u.log.Reserved/reservedSnapshots+after
}

const (
	// reservedSnapshots is how many snapshots fit into what is reserved.
	reservedSnapshots = 2
	// quietAfter is how long the log has not grown when it is quiet.
	quietAfter = time.Second
	// looks is how often a shard looks whether a snapshot is worth its while, in
	// parts of Options.SnapshotAfter: what was written since the last look.
	looks = 64
)

// look is when a shard last asked whether a snapshot is worth its while, and what
// it was then.
type look struct {
	at    journal.Position
	quiet bool
	full  bool
}

// snapshotDue decides. It is cheap unless much has been written since it was
// last asked, by whichever shard.
func (e *Engine) snapshotDue() bool {
	end := max(e.durable, e.tail)
	if end == 0 {
		return false // the journal has not said anything yet
	}
	l := look{end, e.now.Sub(e.heardAt) >= quietAfter, e.full}
	grown := e.opts.SnapshotAfter / looks
	if e.full {
		grown /= 16 // the reserve may be small
	}
	if last := e.looked; e.claim.Bound(last.at, end) < grown && l.quiet == last.quiet && l.full == last.full {
		return false
	}
	e.looked = l
	return e.upkeep(l).shouldSnapshot()
}

// upkeep gathers what the decision depends on.
func (e *Engine) upkeep(l look) upkeep {
	n := &e.snapshot
	u := upkeep{
		after:   e.opts.SnapshotAfter,
		block:   e.claim.BlockSize,
		own:     e.written.own() - n.own,
		size:    e.reserve(),
		garbage: e.live.freed - n.freed,
		written: e.live.written,
		live:    e.live.live,
		log:     e.journal.Usage(e.claim),
		quiet:   l.quiet,
		full:    l.full,
	}
	if u.full {
		kept := e.journal.Retained(e.claim)
		compact := e.compactBlocks(u.log, kept)
		u.gain, u.moved = e.live.gain(max(e.durable, e.tail), kept, compact)
	}
	return u
}

// compactBlocks returns the blocks that a snapshot would move bodies out of.
func (e *Engine) compactBlocks(log journal.Usage, kept map[uint64]journal.RetainedBlock) map[uint64]bool {
	movable := min(2*e.claim.BlockSize, spare(log)/2/uint64(max(1, log.Keepers)))
	return e.live.sparse(e.tail, movable, kept)
}

// spare returns how many bytes there are that nobody has reserved. A shard may move
// bodies into half of them, since consumers need some meanwhile, and of that its part,
// since all shards that keep old blocks may do so at once. If they took more, none could
// finish its snapshot, nor could a consumer settle, and nothing would ever be freed.
func spare(log journal.Usage) uint64 {
	reserved := log.Reserved + log.Reserved/8
	return log.Available + log.Free - min(log.Available+log.Free, reserved)
}

// reserve tells the journal how much a snapshot takes, which it then keeps free of
// senders, and returns it. Only machines that have changed are asked.
func (e *Engine) reserve() uint64 {
	for _, u := range e.resized {
		u.resized = false
		if u.dropped {
			continue
		}
		size := u.Machine.SnapshotSize() + u.Overhead
		e.size += size - u.size
		u.size = size
	}
	clear(e.resized)
	e.resized = e.resized[:0]
	e.journal.Reserve(e.claim, reservedSnapshots*e.size)
	return e.size
}

// resize has the next look ask a machine for its size again.
func (e *Engine) resize(u *Unit) {
	if !u.resized {
		u.resized = true
		e.resized = append(e.resized, u)
	}
}

// quietAt returns when the log, if nobody writes to it before, has been quiet for
// long enough to look once more whether a snapshot is worth its while.
func (e *Engine) quietAt() (time.Time, bool) {
	if e.snapshot.busy || e.looked.quiet && e.looked.at >= e.durable {
		return time.Time{}, false
	}
	return e.heardAt.Add(quietAfter), true
}

// written counts the bytes of records that a shard has appended.
type written struct {
	all       uint64
	snapshots uint64 // of them for snapshots, bodies that were moved included
}

func (w *written) own() uint64 { return w.all - w.snapshots }
