// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/triagemq/triagemq/internal/engine/retention"
	"github.com/triagemq/triagemq/internal/journal"
)

const (
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
	return e.retention(l).ShouldSnapshot()
}

// retention gathers what the decision depends on.
func (e *Engine) retention(l look) retention.State {
	e.updateReserve()
	n := &e.snapshot
	u := retention.State{
		After:       e.opts.SnapshotAfter,
		SegmentSize: e.claim.SegmentSize,
		Own:         e.written.Own() - n.own,
		Size:        e.reserved.size,
		Promised:    e.reserved.promised,
		Garbage:     e.live.Freed - n.freed,
		Written:     e.live.Written,
		Live:        e.live.Live,
		Log:         e.journal.Usage(e.claim),
		Quiet:       l.quiet,
		Full:        l.full,
	}
	u.Stay = e.opts.BodiesStay
	if u.Full || u.Stay && u.Garbage >= u.Need() { // to look at all segments takes a while
		kept := e.journal.Retained(e.claim)
		compact := e.compactSegments(u.Log, kept)
		u.Gain, u.Moved = e.live.Gain(max(e.durable, e.tail), kept, compact)
	}
	return u
}

// compactSegments returns the segments that a snapshot would move bodies out of.
func (e *Engine) compactSegments(log journal.Usage, kept map[uint64]journal.RetainedSegment) map[uint64]bool {
	if e.opts.BodiesStay {
		return nil
	}
	movable := min(2*e.claim.SegmentSize, retention.Spare(log)/2/uint64(max(1, log.Keepers)))
	return e.live.Sparse(e.tail, movable, kept)
}

// quietAt returns when the log, if no shard writes to it before, has been quiet for
// long enough to look once more whether a snapshot is worth its while.
func (e *Engine) quietAt() (time.Time, bool) {
	if e.snapshot.busy || max(e.durable, e.tail) == 0 || e.looked.quiet && e.looked.at >= e.durable {
		return time.Time{}, false
	}
	return e.heardAt.Add(quietAfter), true
}
