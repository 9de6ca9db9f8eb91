// SPDX-License-Identifier: Apache-2.0

package group

import (
	"iter"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/stream"
)

// part is one partition for one group that is not as new. What only some have is apart:
// there may be a thousand partitions in each of a thousand groups.
type part struct {
	epoch  int64  // of the last grant; 0 is none
	owner  string // id of a member; "" is nobody
	since  int64  // when the owner got it, in milliseconds
	seq    stream.SeqNo
	doneAt int64     // when the checkpoint seq was stored, in milliseconds; 0: there is none
	claim  *claim    // nil is none
	hold   *hold     // nil: anybody may have it
	live   *handling // in memory only; nil: nobody has it, or had it in this life
}

// hold keeps a partition from members.
type hold struct {
	paused int64 // until then nobody gets it; 0 is not
	cool   []cooling

	pauseOver bool // the end of the pause was noticed; in memory only
}

// cooling is a member that does not get a partition until a time, in milliseconds.
type cooling struct {
	member string
	until  int64
	over   bool // its end was noticed; in memory only
}

// handling is what is known in memory only of a partition that somebody handles.
type handling struct {
	next     string // who gets it when the owner has released it; "" is nobody
	revokeBy moment // 0: it is not revoked
	was, why string // who had it before, and why not any more, until that is in the history
	handled  stream.SeqNo
	moved    moment // when handled last changed
	heard    moment // when it was reported on
	skipped  uint64 // events that owners have reported as gone
	busy     average
	bytes    average
	swapped  moment // when its load last made it move
}

// asNew is the handling of a partition that has none. It is not changed.
var asNew = handling{handled: None}

// moment is a time in nanoseconds since 1970; 0 is none. It takes a third of a time.Time.
type moment int64

func momentOf(t time.Time) moment { return moment(t.UnixNano()) }

func (m moment) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m))
}

// within reports whether less than d has passed since m.
func (m moment) within(d time.Duration, now time.Time) bool {
	return m != 0 && momentOf(now)-m < moment(d)
}

// look returns what is known of the handling, not to be changed.
func (p *part) look() *handling {
	if p.live == nil {
		return &asNew
	}
	return p.live
}

// handling returns what is known of the handling, to be changed.
func (g *group) handling(p *part) *handling {
	if p.live == nil {
		p.live = &handling{handled: None}
		g.grow(liveCost)
	}
	return p.live
}

// revoked reports whether the owner is asked to release the partition.
func (p *part) revoked() bool { return p.live != nil && p.live.revokeBy != 0 }

// done reports whether there is a checkpoint.
func (p *part) done() bool { return p.doneAt != 0 }

func (p *part) checkpoint() stream.SeqNo {
	switch {
	case !p.done():
		return None
	case p.seq < 0:
		return Beginning
	}
	return p.seq
}

func (p *part) paused() int64 {
	if p.hold == nil {
		return 0
	}
	return p.hold.paused
}

func (p *part) isPaused(now time.Time) bool { return ms(p.paused()).After(now) }

// cooling returns the members that do not get the partition for a while.
func (p *part) cooling() []cooling {
	if p.hold == nil {
		return nil
	}
	return p.hold.cool
}

func (p *part) cools(id string, now time.Time) bool {
	for _, c := range p.cooling() {
		if c.member == id && ms(c.until).After(now) {
			return true
		}
	}
	return false
}

// setHold replaces what keeps the partition from members.
func (g *group) setHold(p *part, paused int64, cool []cooling) {
	g.grow(-p.hold.cost())
	if p.hold = nil; paused != 0 || len(cool) > 0 {
		p.hold = &hold{paused: paused, cool: cool}
	}
	g.grow(p.hold.cost())
}

// cooled returns the cool-downs of a partition with one more, without those that are over.
func (p *part) cooled(id string, now time.Time, coolDown time.Duration) []cooling {
	cool := slices.DeleteFunc(slices.Clone(p.cooling()), func(c cooling) bool { return c.member == id || !ms(c.until).After(now) })
	if len(cool) >= maxCooling {
		cool = slices.Delete(cool, 0, 1)
	}
	return append(cool, cooling{member: id, until: now.Add(min(coolDown, maxCoolDown)).UnixMilli()})
}

// setClaim replaces the claim of a partition.
func (g *group) setClaim(p *part, c claim) {
	g.grow(c.cost() - p.claim.cost())
	p.claim = &c
}

// at returns a partition; nil is one that is as new, as all are of a group that is not there.
func (g *group) at(n int) *part {
	if g == nil || n < 0 || n >= len(g.parts) {
		return nil
	}
	return g.parts[n]
}

// part returns a partition, which it makes if it is as new.
func (g *group) part(n int) *part {
	if more := n + 1 - len(g.parts); more > 0 {
		g.parts = append(g.parts, make([]*part, more)...)
		g.grow(int64(more) * slotCost)
	}
	if g.parts[n] == nil {
		g.parts[n] = new(part)
		g.grow(partCost)
		g.all.parts++
		g.all.repeated += recordsOfPart * int64(len(g.name))
	}
	return g.parts[n]
}

// used returns the partitions that are not as new, by their numbers.
func (g *group) used() iter.Seq2[int, *part] {
	return func(yield func(int, *part) bool) {
		for n, p := range g.parts {
			if p != nil && !yield(n, p) {
				return
			}
		}
	}
}

// unhandled forgets what is in memory only of a group that has no members.
func (g *group) unhandled() {
	for _, p := range g.used() {
		if p.live != nil {
			p.live = nil
			g.grow(-liveCost)
		}
	}
}
