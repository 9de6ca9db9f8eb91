// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/triagemq/triagemq/internal/engine/retention"
	"github.com/triagemq/triagemq/internal/journal"
)

// reserve is what an engine has the journal keep free of senders, so that a full disk can
// always be emptied. It has two parts:
//
//	available on disk, allocated
//	│◄── settling ──►│◄──── snapshots ────►│◄─ base ─►│◄── senders ──
//	│ D              │ 2 S                 │          │
//	0                D                     D + 2 S    target
//
//	D   a settlement for each message that waits, each in a group of its own, and what
//	    must be written before it can be settled: that it arrives, if it is scheduled,
//	    and that it becomes a dead letter, if it expires and is to be one. Nothing that is written frees space
//	    before a snapshot is whole, and in the worst order of settlements a snapshot
//	    frees nothing: so D alone must be enough to settle everything.
//	2 S the snapshot in progress, and the next one: the records of a snapshot can be
//	    freed only when the next one is there.
//
// While senders are refused, all that is written keeps one invariant: available >= D.
//
//	a send       is admitted if available >= D + 2 S + base afterwards, with the D and S
//	             that it leads to. The journal adds that to the reserve in the call that
//	             admits it.
//	a settlement takes at most what D falls by.
//	a snapshot   begins if it can be finished without D (its cost is promised to it, and
//	             others leave that alone), and is given up if that changes.
//	what falls due: messages that arrive, or expire, take what D falls by, too.
//	a failed delivery, another dead letter, a deferral, a definition, another
//	             class, the state of a session, the return of what was received and
//	             deleted: takes of what is above D, which snapshots free again. Each asks
//	             before it writes: when only D is left, the engine is short, and these are
//	             refused or wait. A lock that ends does so without a record then: its
//	             message is free, and was not counted as failed.
//
// When everything is settled a snapshot is a few hundred bytes, and frees the whole log.
// All of the reserve are blocks that are allocated, before a send is admitted: another
// process that fills the disk takes none of them, nor do other journals there.
//
// How much each machine needs is asked of it at times; between two times everything that
// is admitted counts with what it takes at most.
type reserve struct {
	size     uint64              // of a snapshot, as of the last look
	settling uint64              // of all settlements, as of the last look
	resized  []*Unit             // whose part of both may have changed since, in the order of that
	round    uint64              // counts how often all were asked that had changed before
	more     journal.Reservation // what was admitted in the last round, until this one is over
	newer    journal.Reservation // what was admitted in this round
	promised uint64              // to the snapshot in progress; zero while the disk is not full
	at       journal.Position    // of the last look
	short    bool                // only what settlements need is left
	spare    uint64              // how much could be written beside it, as of the last count
	counted  uint64              // Engine.written.All then
}

// Needs is what a command will write that adds something.
type Needs struct {
	Records  int // bytes of its records
	Items    int // that have to be let go of one day: messages
	Due      int // bytes that must be written before some of them can be
	Snapshot int // bytes by which a snapshot grows, rather more than less
}

const (
	// settlement is how much of the log it takes to let go of one item, in a group of its
	// own: its record has the prefix, a kind and a number.
	settlement = 24 + 16 + journal.GroupSize
	// unknown is the size in a snapshot of a body of which nothing is known.
	unknown = 128
	// lookUnits is how many machines a step asks at most.
	lookUnits = 512
)

// reservation is what the journal has to reserve for it.
func (n Needs) reservation() journal.Reservation {
	return journal.Reservation{
		Settling:  uint64(n.Items)*settlement + uint64(n.Due),
		Snapshots: uint64(n.Records + n.Items*journal.RecordSize(0) + retention.ReservedSnapshots*n.Snapshot),
	}
}

// reserveDue reports whether it is time to ask the machines again.
func (e *Engine) reserveDue() bool {
	r, step := &e.reserved, e.opts.SnapshotAfter/looks
	return r.more.Total()+r.newer.Total() >= step || e.full != e.looked.full && len(r.resized) > 0 ||
		e.claim.Bound(r.at, max(e.durable, e.tail)) >= step
}

// updateReserve tells the journal how much to keep free of senders. Only machines that
// have changed are asked, and at most lookUnits of them. What was admitted counts until all
// were that had changed by then: others that change meanwhile do not prolong that.
func (e *Engine) updateReserve() {
	r := &e.reserved
	r.at = max(e.durable, e.tail)
	n := min(len(r.resized), lookUnits)
	for _, u := range r.resized[:n] {
		u.resized = false
		if u.dropped {
			continue
		}
		records, bytes := u.Machine.Settling()
		settling, size := records*settlement+bytes, u.Machine.SnapshotSize()+u.Overhead
		r.settling += settling - u.settling
		r.size += size - u.size
		u.settling, u.size = settling, size
	}
	rest := copy(r.resized, r.resized[n:])
	clear(r.resized[rest:])
	switch r.resized = r.resized[:rest]; {
	case rest == 0:
		r.more, r.newer = journal.Reservation{}, journal.Reservation{}
	case r.resized[0].round == r.round: // so are all others
		r.more, r.newer = r.newer, journal.Reservation{}
		r.round++
	}
	open := uint64(e.eff.Size() + e.eff.Count()*journal.RecordSize(0)) // is yet to be appended
	e.journal.Reserve(e.claim, r.more.Plus(r.newer).Plus(journal.Reservation{
		Settling:  r.settling,
		Snapshots: retention.ReservedSnapshots*r.size + open,
		Promised:  r.promised,
	}))
}

// forget leaves out a unit that is dropped.
func (r *reserve) forget(u *Unit) {
	r.size -= u.size
	r.settling -= u.settling
	u.size, u.settling = 0, 0
}

// resize has the next look ask a machine for its size again.
func (e *Engine) resize(u *Unit) {
	if !u.resized {
		u.resized, u.round = true, e.reserved.round
		e.reserved.resized = append(e.reserved.resized, u)
	}
}

// promise sets aside what the snapshot in progress takes on a full disk, so that other
// shards do not begin what could then not be finished.
func (e *Engine) promise(bytes uint64) {
	if e.reserved.promised != bytes {
		e.reserved.promised = bytes
		e.updateReserve()
	}
}

// noteShort notes at the beginning of a step whether only what settlements need is left.
func (e *Engine) noteShort() {
	r := &e.reserved
	r.short, r.spare, r.counted = false, uint64(e.groupLimit), e.written.All // there is more than the target
	if e.full {
		e.countSpare()
		r.short = r.spare == 0
	}
}

// countSpare asks the journal how much may be written that frees nothing.
func (e *Engine) countSpare() {
	log := e.journal.Usage(e.claim)
	have, need := log.Available+log.Free, log.Settling+log.Promised
	e.reserved.spare, e.reserved.counted = have-min(have, need), e.written.All
}

// hasSpace reports whether so many bytes can be written that free nothing, and leave alone
// what settlements need and what is promised to a snapshot. One step may write more than
// that: so it is asked before each command, or part of one.
func (e *Engine) hasSpace(bytes int) bool {
	const frames = 4 // times what is counted as written, at most, is what small records take
	r, need := &e.reserved, uint64(bytes+e.eff.Size()+e.eff.Count()*journal.RecordSize(0))
	need += need / 8 // for the headers of batches and the ends of segments
	if r.spare < need+frames*(e.written.All-r.counted) {
		e.countSpare()
	}
	return r.spare >= need+frames*(e.written.All-r.counted)
}

// tooShortToTick reports whether there is no space for all that falls due, of which some frees
// nothing. A Tick writes some hundred bytes for each of up to some hundred messages.
func (e *Engine) tooShortToTick() bool {
	const most, part = 96 << 10, 8 // of a few messages less: those of an eighth of what waits
	return e.reserved.short || e.full && !e.hasSpace(int(min(most, e.reserved.settling/part)))
}
