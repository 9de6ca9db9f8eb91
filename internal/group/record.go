// SPDX-License-Identifier: Apache-2.0

package group

import (
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
)

// The kinds of record. They are on disk and never change; zero is none.
// docs/format/hub-records.md draws them. Each says all of what it is about, so that it can
// be applied again, and a snapshot consists of the same records.
const (
	kindCreated    = 1  // nothing follows
	kindMember     = 2  // group, id, run, name, keep, since, flags
	kindGone       = 3  // group, id; the partitions of the member are free
	kindOwner      = 4  // group, partition, epoch, owner, since
	kindCheckpoint = 5  // group, partition, event, time
	kindHold       = 6  // group, partition, end of a pause, cool-downs
	kindClaim      = 7  // group, partition, owner, version, time
	kindForget     = 8  // group
	kindBegin      = 9  // a snapshot begins
	kindEnd        = 10 // a snapshot ends: latest time, floor of epochs
)

// flagLeaving says that the member is leaving.
const flagLeaving = 1

// maxEpoch is more than any partition reaches.
const maxEpoch = 1 << 62

func (m *member) write(out *machine.Effects) {
	out.Begin(kindMember)
	out.String(m.group.name)
	out.String(m.ID)
	out.String(m.Run)
	out.String(m.Name)
	out.Uint(uint64(m.Keep.Milliseconds()))
	out.Uint(uint64(m.since))
	if m.leaving {
		out.Byte(flagLeaving)
	} else {
		out.Byte(0)
	}
	out.End()
}

// beginPart starts a record about a partition.
func beginPart(kind byte, g *group, n int, out *machine.Effects) {
	out.Begin(kind)
	out.String(g.name)
	out.Uint(uint64(n))
}

func (p *part) writeOwner(g *group, n int, out *machine.Effects) {
	beginPart(kindOwner, g, n, out)
	out.Uint(uint64(p.epoch))
	out.String(p.owner)
	out.Uint(uint64(p.since))
	out.End()
}

func (p *part) writeCheckpoint(g *group, n int, out *machine.Effects) {
	beginPart(kindCheckpoint, g, n, out)
	out.Uint(uint64(p.seq + 1))
	out.Uint(uint64(p.doneAt))
	out.End()
}

func (p *part) writeHold(g *group, n int, out *machine.Effects) {
	beginPart(kindHold, g, n, out)
	out.Uint(uint64(p.paused()))
	out.Uint(uint64(len(p.cooling())))
	for _, c := range p.cooling() {
		out.String(c.member)
		out.Uint(uint64(c.until))
	}
	out.End()
}

func (p *part) writeClaim(g *group, n int, out *machine.Effects) {
	beginPart(kindClaim, g, n, out)
	out.String(p.claim.owner)
	out.Uint(p.claim.version)
	out.Uint(uint64(p.claim.at))
	out.End()
}

// readName reads a name that is not empty.
func readName(r *machine.Reader) string {
	name := r.String()
	if !validName(name) {
		r.Fail()
	}
	return name
}

// readText reads a name that may be empty.
func readText(r *machine.Reader) string {
	text := r.String()
	if len(text) > maxName {
		r.Fail()
	}
	return text
}

func readMillis(r *machine.Reader) int64 { return int64(r.UpTo(maxPause)) }

func readMember(r *machine.Reader) (as Member, since int64, leaving bool) {
	as.ID, as.Run, as.Name = readName(r), readName(r), readText(r)
	as.Keep = time.Duration(r.UpTo(uint64(maxKeep.Milliseconds()))) * time.Millisecond
	since = readMillis(r)
	return as, since, r.Flags(flagLeaving) != 0
}

func readOwner(r *machine.Reader) (epoch int64, owner string, since int64) {
	epoch, owner, since = int64(r.UpTo(maxEpoch)), readText(r), readMillis(r)
	if epoch == 0 {
		r.Fail()
	}
	return epoch, owner, since
}

func readCheckpoint(r *machine.Reader) (seq stream.SeqNo, at int64) {
	return stream.SeqNo(r.UpTo(math.MaxInt64)) - 1, readMillis(r)
}

func readHold(r *machine.Reader) (paused int64, cool []cooling) {
	paused = readMillis(r)
	for range r.UpTo(maxCooling) {
		cool = append(cool, cooling{member: readName(r), until: readMillis(r)})
	}
	return paused, cool
}

func readClaim(r *machine.Reader) (c claim) {
	c = claim{owner: readText(r), version: r.UpTo(math.MaxInt64), at: readMillis(r)}
	if c.version == 0 {
		r.Fail()
	}
	return c
}
