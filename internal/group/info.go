// SPDX-License-Identifier: Apache-2.0

package group

import (
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/stream"
)

// Info is a group as an operator sees it.
type Info struct {
	Members    []MemberInfo
	Partitions []PartitionInfo // all of the hub, in order
	Changes    []Change        // the last ones since a restart, oldest first
	Moves      uint64          // from one member to another, since a restart
}

// MemberInfo is one member.
type MemberInfo struct {
	Member
	Since      time.Time // when it joined
	Heard      time.Time // when it last reported; zero is not since a restart
	Partitions int
	Connected  bool
	Leaving    bool
}

// PartitionInfo is one partition for a group.
type PartitionInfo struct {
	Owner       string // id of a member, or who has claimed it
	Epoch       int64
	State       State
	Checkpoint  *Checkpoint  // nil is none
	Handled     stream.SeqNo // as the owner says; None if it has not
	Skipped     uint64       // events that owners have reported as gone, while there were members
	Moved       time.Time    // when Handled last changed, or the owner got the partition
	Since       time.Time    // when the owner got it
	PausedUntil time.Time    // zero: it is not paused
}

// State is that of a partition for a group.
type State string

// The states.
const (
	Free     State = "free"     // has no owner
	Owned    State = "owned"    // has an owner
	Revoking State = "revoking" // has one who is asked to release it
	Paused   State = "paused"   // nobody gets it
	Claimed  State = "claimed"  // by a processor that balances by itself
)

// Info describes a group.
func (s *Groups) Info(now time.Time, name string) Info {
	info := Info{Partitions: make([]PartitionInfo, s.partitions)}
	g := s.find(name)
	if g == nil {
		g = &group{}
	}
	for n := range info.Partitions {
		if info.Partitions[n] = (PartitionInfo{State: Free, Handled: None}); g.at(n) != nil {
			info.Partitions[n] = g.at(n).info(n, now, len(g.members) > 0)
		}
	}
	held := make(map[string]int, len(g.members))
	for _, p := range g.used() {
		held[p.owner]++
	}
	for _, m := range g.members {
		info.Members = append(info.Members, MemberInfo{
			Member: m.Member, Since: ms(m.since), Heard: m.heard, Partitions: held[m.ID], Connected: m.connected, Leaving: m.leaving,
		})
	}
	info.Changes, info.Moves = slices.Clone(g.changes), g.moves
	return info
}

func (p *part) info(n int, now time.Time, coordinated bool) PartitionInfo {
	l := p.look()
	i := PartitionInfo{Owner: p.owner, Epoch: p.epoch, State: Free, Handled: l.handled, Skipped: l.skipped, Moved: l.moved.time(), Since: ms(p.since)}
	if p.done() {
		i.Checkpoint = &Checkpoint{Partition: n, Epoch: p.epoch, SeqNo: p.checkpoint(), At: ms(p.doneAt)}
	}
	switch {
	case p.owner != "" && !p.revoked():
		i.State = Owned
	case p.owner != "":
		i.State = Revoking
	case p.isPaused(now):
		i.State = Paused
	case !coordinated && p.claim != nil && p.claim.owner != "":
		i.State, i.Owner, i.Since = Claimed, p.claim.owner, ms(p.claim.at)
	}
	if p.isPaused(now) {
		i.PausedUntil = ms(p.paused())
	}
	return i
}

// Run returns the run of a member; "" is that there is none.
func (s *Groups) Run(name, id string) string {
	if m := s.member(name, id); m != nil {
		return m.Run
	}
	return ""
}

// Epoch returns the epoch of the last grant of a partition; 0 is none.
func (s *Groups) Epoch(name string, n int) int64 {
	if p := s.find(name).at(n); p != nil {
		return p.epoch
	}
	return 0
}

// Owner returns the owner of a partition and the epoch of the grant; "" is nobody.
func (s *Groups) Owner(name string, n int) (owner string, epoch int64) {
	if p := s.find(name).at(n); p != nil {
		return p.owner, p.epoch
	}
	return "", 0
}
