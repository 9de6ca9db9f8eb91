// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
)

// What is bounded.
const (
	maxMembers    = 1024
	maxGroups     = 1 << 14
	maxName       = 256     // bytes
	maxPartitions = 1 << 14 // that a record may speak of
	maxCooling    = 8       // members that do not get a partition back for a while
	maxChanges    = 256
)

// Groups is the state of the consumer groups of one event hub. It is a [machine.Machine].
type Groups struct {
	partitions int      // of the hub; not part of the state
	list       []*group // by name
	last       int64    // latest time that was stored, in milliseconds
	floor      int64    // epochs are above it: some may have been lost, or were those of a group that is forgotten
	version    uint64   // of the last assignment; not part of the state

	members, parts int // of all groups

	due     time.Time // when Tick has something to do; zero is never
	news    []*member // that have something to hear
	ended   []News
	restore restore
}

var _ machine.Machine = (*Groups)(nil)

// New returns the groups to which a history is replayed, or which are created.
func New() *Groups { return &Groups{} }

// Create begins the history.
func (s *Groups) Create(out *machine.Effects) {
	out.Begin(kindCreated)
	out.End()
	s.restore.begun = true
}

// group is one consumer group.
type group struct {
	all     *Groups
	name    string
	members []*member // by id
	parts   []part    // by number; there may be fewer than the hub has, which are as new

	// In memory only.
	balanceAt time.Time // when partitions are assigned again; zero is not
	loadsAt   time.Time // when loads are compared next; zero is not
	changes   []Change  // of ownership, oldest first
	moves     uint64
}

// member is a process of a group.
type member struct {
	group *group
	Member
	since   int64 // when it joined, in milliseconds
	leaving bool

	// In memory only.
	connected bool
	heard     time.Time // when it last reported; zero is not in this life
	until     time.Time // when it is given up; zero is not yet known
	news      bool      // on Groups.news
}

// part is one partition for one group.
type part struct {
	epoch  int64  // of the last grant; 0 is none
	owner  string // id of a member; "" is nobody
	since  int64  // when the owner got it, in milliseconds
	done   bool   // there is a checkpoint
	seq    stream.SeqNo
	doneAt int64 // of the checkpoint
	paused int64 // until then nobody gets it; 0 is not
	cool   []cooling
	claim  claim

	// In memory only.
	next     string    // who gets it when the owner has released it; "" is nobody
	revokeBy time.Time // zero: it is not revoked
	was, why string    // who had it before, and why not any more, until that is in the history
	handled  stream.SeqNo
	moved    time.Time // when handled last changed
	heard    time.Time // when it was reported on
	busy     average
	bytes    average
	swapped  time.Time // when its load last made it move

	pauseOver bool // the end of the pause was noticed
}

// cooling is a member that does not get a partition until a time, in milliseconds.
type cooling struct {
	member string
	until  int64
	over   bool // its end was noticed; in memory only
}

// Change is a change of ownership.
type Change struct {
	At        time.Time
	Partition int
	From, To  string // ids of members; "" is nobody
	Why       string
}

// News is what a member has to hear.
type News struct {
	Group, Member, Run string
	Assignment         Assignment
	Err                error // the member is none any more; then there is no assignment
}

// News returns what members have to hear since the last call.
func (s *Groups) News() []News {
	news := s.ended
	for _, m := range s.news {
		if m.news {
			m.news = false
			news = append(news, News{Group: m.group.name, Member: m.ID, Run: m.Run, Assignment: s.assignment(m)})
		}
	}
	clear(s.news)
	s.news, s.ended = s.news[:0], nil
	return news
}

// HasNews reports whether News would return something.
func (s *Groups) HasNews() bool { return len(s.news)+len(s.ended) > 0 }

func (s *Groups) tell(m *member) {
	if m != nil && m.connected && !m.news {
		m.news = true
		s.news = append(s.news, m)
	}
}

func (s *Groups) assignment(m *member) Assignment {
	s.version = max(s.version+1, uint64(s.last)) // it rises over restarts, too
	a := Assignment{Version: s.version, Partitions: s.partitions}
	for n := range m.group.parts {
		if p := &m.group.parts[n]; p.owner == m.ID {
			a.Grants = append(a.Grants, Grant{Partition: n, Epoch: p.epoch, Checkpoint: p.checkpoint(), RevokeBy: p.revokeBy})
		}
	}
	return a
}

func (p *part) checkpoint() stream.SeqNo {
	switch {
	case !p.done:
		return None
	case p.seq < 0:
		return Beginning
	}
	return p.seq
}

// find returns a group, nil if there is none.
func (s *Groups) find(name string) *group {
	if i, ok := s.search(name); ok {
		return s.list[i]
	}
	return nil
}

func (s *Groups) search(name string) (int, bool) {
	return slices.BinarySearchFunc(s.list, name, func(g *group, name string) int { return cmp.Compare(g.name, name) })
}

// open returns a group, which it makes if there is none.
func (s *Groups) open(name string) (*group, error) {
	i, ok := s.search(name)
	if ok {
		return s.list[i], nil
	}
	if !validName(name) || len(s.list) >= maxGroups {
		return nil, ErrName
	}
	g := &group{all: s, name: name}
	s.list = slices.Insert(s.list, i, g)
	return g, nil
}

// openPart is open for a partition of the hub.
func (s *Groups) openPart(name string, n int) (*group, *part, error) {
	if n < 0 || n >= s.partitions {
		return nil, nil, ErrPartition
	}
	g, err := s.open(name)
	if err != nil {
		return nil, nil, err
	}
	return g, g.part(n), nil
}

func validName(name string) bool { return name != "" && len(name) <= maxName }

// part returns a partition. It is valid until another is asked for.
func (g *group) part(n int) *part {
	for len(g.parts) <= n {
		g.parts = append(g.parts, part{handled: None})
		g.all.parts++
	}
	return &g.parts[n]
}

func (g *group) search(id string) (int, bool) {
	return slices.BinarySearchFunc(g.members, id, func(m *member, id string) int { return cmp.Compare(m.ID, id) })
}

// member returns one by its id; nil if there is none.
func (g *group) member(id string) *member {
	if i, ok := g.search(id); ok {
		return g.members[i]
	}
	return nil
}

// held returns how many partitions a member has.
func (g *group) held(id string) (n int) {
	for i := range g.parts {
		if g.parts[i].owner == id {
			n++
		}
	}
	return n
}

// SetPartitions says how many partitions the hub has. They are never fewer than before.
func (s *Groups) SetPartitions(now time.Time, n int) {
	if n <= s.partitions {
		return
	}
	s.partitions = min(n, maxPartitions)
	for _, g := range s.list {
		if len(g.members) > 0 {
			s.balanceSoon(now, g)
			for _, m := range g.members {
				s.tell(m)
			}
		}
	}
}

// Forget forgets a group. Its members are none any more.
func (s *Groups) Forget(name string, out *machine.Effects) {
	i, ok := s.search(name)
	if !ok {
		return
	}
	out.Begin(kindForget)
	out.String(name)
	out.End()
	for _, m := range s.list[i].members {
		s.end(m, ErrUnknownMember)
	}
	s.drop(i)
}

// drop forgets a group by its place. Epochs go on above those that it had: another group may
// get its name, and a process of this one may still be running.
func (s *Groups) drop(i int) {
	for n := range s.list[i].parts {
		s.floor = max(s.floor, s.list[i].parts[n].epoch)
	}
	s.members -= len(s.list[i].members)
	s.parts -= len(s.list[i].parts)
	s.list = slices.Delete(s.list, i, i+1)
}

// Names returns the names of the groups.
func (s *Groups) Names() []string {
	names := make([]string, len(s.list))
	for i, g := range s.list {
		names[i] = g.name
	}
	return names
}

// end has a member hear that it is none any more.
func (s *Groups) end(m *member, err error) {
	m.news = false // what is on the list of them is left out
	s.ended = append(s.ended, News{Group: m.group.name, Member: m.ID, Run: m.Run, Err: err})
}

// stamp returns a time in milliseconds, as it is stored.
func (s *Groups) stamp(now time.Time) int64 {
	s.last = max(s.last, now.UnixMilli(), 1)
	return max(now.UnixMilli(), 1)
}

// ms returns a stored time.
func ms(t int64) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(t)
}
