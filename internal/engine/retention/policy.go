// SPDX-License-Identifier: Apache-2.0

package retention

import "github.com/triagemq/triagemq/internal/journal"

// State is what the decision to take a snapshot depends on.
//
// A snapshot costs its size S in writing and gains two things: the shard's own
// history before it need not be replayed, and segments that hold nothing alive can
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
// at most two segments: a small disk has small ones, and what a drained store keeps is
// a small part of it. What snapshots write counts in none of the first two, and a round of snapshots by all
// shards writes T: after it the third is at most T until T + A more bytes have come.
// So snapshots never trigger each other, and an idle broker comes to rest.
//
// If bodies are not moved, garbage counts only where it can be freed: it must also be the
// bytes of segments in which nothing lives, and how much of the rest is dead does not
// matter.
//
// While the disk is full a snapshot is paid for out of the reserve, and the only
// thing that counts is what it frees. C is S and the bodies that it moves:
//
//	gain    >= C + max(C/8, A/64) bytes of segments in which nothing of the shard is
//	                              alive, or which are kept because of it
//	space   >= C + C/8            it can be finished, and everything be settled besides
//
// One in progress when the disk becomes full, for which that does not hold, is
// given up. The reserve is twice S: the records of a snapshot can be freed only
// when the next one is there.
//
// The bound on what is written: for each byte that a shard appends, half a byte of
// its snapshots by the first rule, half by the second (a byte is freed once), one
// by the third, and one of bodies moved, because a segment is given up only while
// less than half of it lives, or of the share of each shard that keeps it. A broker writes at most four times what its clients
// make it write, and typically 1.1 times.
type State struct {
	After       uint64 // Options.SnapshotAfter
	SegmentSize uint64 // of the log
	Own         uint64 // bytes of records since the last snapshot began, its own not counted
	Size        uint64 // of a snapshot: S
	Garbage     uint64 // bytes of bodies freed since the last snapshot began
	Written     uint64 // bytes in the segments that the shard keeps
	Live        uint64 // of them
	Log         journal.Usage
	Promised    uint64 // of Log.Promised, the part for this shard
	Quiet       bool   // the shard has written nothing for a while
	Full        bool   // the disk is full
	Stay        bool   // bodies are not moved
	Gain        uint64 // if it is, or if they are not: the bytes that a snapshot frees
	Moved       uint64 // and those of the bodies that it moves
}

// ShouldSnapshot reports whether it is time for a snapshot.
func (u State) ShouldSnapshot() bool {
	if u.Full {
		cost := u.Size + u.Moved
		return u.Gain >= cost+max(cost/8, u.After/64) && u.Fits(cost+cost/8)
	}
	after, need := u.after(), u.Need()
	garbage := u.Garbage >= need
	if u.Stay {
		garbage = garbage && u.Gain >= need
	} else {
		garbage = garbage && u.Written > 2*u.Live+after
	}
	return u.Own >= need || garbage ||
		u.Log.HeldBack >= 2*(u.Log.Reserved-u.Log.Settling)/ReservedSnapshots+after
}

// Cost is how many bytes of the log a snapshot takes at most.
func (u State) Cost() uint64 { return (u.Size + u.Moved) * 9 / 8 }

// Fits reports whether a snapshot that takes so many bytes can be finished. It leaves
// alone what settlements need, unless that is gone already: in a store that was filled by an
// earlier version, which reserved less, freeing space is worth everything that is left.
func (u State) Fits(bytes uint64) bool {
	settling, others := u.Log.Settling, u.Log.Promised-min(u.Log.Promised, u.Promised)
	if u.Log.Available < settling {
		settling = 0
	}
	return u.Log.Available >= settling+others+bytes
}

func (u State) after() uint64 {
	if u.Quiet {
		return min(u.After/8, 2*u.SegmentSize)
	}
	return u.After
}

// Need is how many bytes a snapshot must gain, while the disk is not full.
func (u State) Need() uint64 { return max(u.after(), 2*u.Size) }

// ReservedSnapshots is how many snapshots fit into what is reserved.
const ReservedSnapshots = 2

// Spare returns how many bytes no claim has reserved. A shard may move
// bodies into half of them, since consumers need some meanwhile, and of that its part,
// since all shards that keep old segments may do so at once. If they took more, none could
// finish its snapshot, nor could a consumer settle, and nothing would ever be freed.
func Spare(log journal.Usage) uint64 {
	reserved := log.Reserved + log.Reserved/8
	return log.Available + log.Free - min(log.Available+log.Free, reserved)
}

// Written counts the bytes of records that a shard has appended.
type Written struct {
	All       uint64
	Snapshots uint64 // of them for snapshots, bodies that were moved included
}

// Own returns those that are not for snapshots.
func (w *Written) Own() uint64 { return w.All - w.Snapshots }
