// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

// What is bounded.
const (
	maxMembers    = 1024
	maxOfKey      = maxMembers / 4 * 3 // of them by one key: some places stay for others
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

	members, parts int   // of all groups
	size           int64 // of all groups, in bytes of memory, about
	repeated       int64 // bytes of the names of groups in the records of a snapshot, at most
	space          int64 // that they may grow by
	bounded        bool  // room is set

	due     time.Time // when Tick has something to do, the first of the groups'; zero is never
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
	parts   []*part   // by number; what is nil, or is not there, is as new
	size    int64     // in bytes of memory, about

	// In memory only.
	due       time.Time // when Tick has something to do; zero is never
	balanceAt time.Time // when partitions are assigned again; zero is not
	loadsAt   time.Time // when loads are compared next; zero is not
	changes   []Change  // of ownership, oldest first
	moves     uint64

	claimants    [8]string // that claimed partitions last, so that their names are kept once
	nextClaimant int
	replaced     *replacedRuns // nil: none was
	told         uint64        // version of the last news for which its partitions were read
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
	at := make(map[*member]int, len(s.news)) // where the news of a member are
	for _, m := range s.news {
		if m.news {
			m.news = false
			at[m] = len(news)
			s.version = max(s.version+1, uint64(s.last)) // it rises over restarts, too
			news = append(news, News{Group: m.group.name, Member: m.ID, Run: m.Run, Assignment: Assignment{Version: s.version, Partitions: s.partitions}})
		}
	}
	s.assignments(at, news)
	clear(s.news)
	s.news, s.ended = s.news[:0], nil
	return news
}

// assignments fills in what members have. It goes once over the partitions of a group, however
// many of its members have news.
func (s *Groups) assignments(at map[*member]int, news []News) {
	var last *group
	for _, m := range s.news {
		g := m.group
		if _, ok := at[m]; !ok || g == last || g.told == s.version {
			continue
		}
		last, g.told = g, s.version
		for n, p := range g.used() {
			if p.owner == "" {
				continue
			}
			if i, ok := at[g.member(p.owner)]; ok {
				a := &news[i].Assignment
				a.Grants = append(a.Grants, Grant{Partition: n, Epoch: p.epoch, Checkpoint: p.checkpoint(), RevokeBy: p.look().revokeBy.time()})
			}
		}
	}
}

// HasNews reports whether News would return something.
func (s *Groups) HasNews() bool { return len(s.news)+len(s.ended) > 0 }

func (s *Groups) tell(m *member) {
	if m != nil && m.connected && !m.news {
		m.news = true
		s.news = append(s.news, m)
	}
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
	g := &group{all: s, name: strings.Clone(name)} // it may be a part of something large
	s.list = slices.Insert(s.list, i, g)
	g.grow(groupSize(name))
	return g, nil
}

// openPart is open for a partition of the hub, for which there has to be memory, and for as
// much more.
func (s *Groups) openPart(name string, n int, more int64) (*group, *part, error) {
	if n < 0 || n >= s.partitions {
		return nil, nil, ErrPartition
	}
	if err := s.fits(s.costOf(name, n) + more); err != nil {
		return nil, nil, err
	}
	g, err := s.open(name)
	if err != nil {
		return nil, nil, err
	}
	return g, g.part(n), nil
}

// findPart returns a partition of the hub and its group; nil is what is as new.
func (s *Groups) findPart(name string, n int) (*group, *part, error) {
	if n < 0 || n >= s.partitions {
		return nil, nil, ErrPartition
	}
	if g := s.find(name); g != nil {
		return g, g.at(n), nil
	}
	return nil, nil, nil
}

func validName(name string) bool { return name != "" && len(name) <= maxName }

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
	for _, p := range g.used() {
		if p.owner == id {
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
	g := s.list[i]
	for _, p := range g.used() {
		s.floor = max(s.floor, p.epoch)
		s.parts--
		s.repeated -= recordsOfPart * int64(len(g.name))
	}
	s.members -= len(g.members)
	g.grow(-g.size)
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
