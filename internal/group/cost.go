// SPDX-License-Identifier: Apache-2.0

package group

// What the parts of the state take in memory, with what the allocator adds. Names count for
// each time that they are stored, though some are shared.
const (
	groupCost  = 256
	memberCost = 768 // with what is known of the right of one that is away
	slotCost   = 16  // of a partition that is as new, below one that is not
	partCost   = 96
	liveCost   = 144
	holdCost   = 64
	coolCost   = 48
	claimCost  = 64
	changeCost = 112

	replacedCost = 576

	// claimName is what the name in a claim takes at least. So a process can claim what
	// another, or nobody, had claimed before, however little memory is left.
	claimName = 64
)

// handledCost is what a partition takes that members share.
const handledCost = slotCost + partCost + liveCost

// Size returns how much memory the groups take, about.
func (s *Groups) Size() int64 { return s.size }

// SetSpace says how much memory commands may add from now on: one that needs more is refused
// with ErrMemory. What is replayed, and what frees something, is never refused.
func (s *Groups) SetSpace(n int64) { s.space, s.bounded = n, true }

// fits refuses what there is no memory for.
func (s *Groups) fits(n int64) error {
	if s.bounded && n > 0 && n > s.space {
		return ErrMemory
	}
	return nil
}

// grow counts memory that a group takes.
func (g *group) grow(n int64) {
	g.size += n
	g.all.size += n
	g.all.space -= n
}

func groupSize(name string) int64 { return groupCost + int64(len(name)) }

func (m *Member) cost() int64 {
	return memberCost + int64(len(m.ID)+len(m.Run)+len(m.Name)+len(m.Key))
}

func (c *claim) cost() int64 {
	if c == nil {
		return 0
	}
	return claimCost + max(claimName, int64(len(c.owner)))
}

func (h *hold) cost() int64 {
	if h == nil {
		return 0
	}
	n := int64(holdCost)
	for _, c := range h.cool {
		n += coolCost + int64(len(c.member))
	}
	return n
}

func (p *part) cost() int64 {
	n := partCost + p.claim.cost() + p.hold.cost()
	if p.live != nil {
		n += liveCost
	}
	return n
}

func (c *Change) cost() int64 { return changeCost + int64(len(c.From)+len(c.To)) }

// costOf is what a group, and partitions of it, take that are not there. All are those of
// the hub if n is negative.
func (s *Groups) costOf(name string, n int) int64 {
	g := s.find(name)
	cost := int64(0)
	if g == nil {
		g = &group{}
		cost = groupSize(name)
	}
	if n < 0 {
		return cost + int64(s.partitions)*handledCost - min(int64(len(g.parts)), int64(s.partitions))*slotCost - g.handledSize()
	}
	cost += int64(max(n+1-len(g.parts), 0)) * slotCost
	if g.at(n) == nil {
		cost += partCost
	}
	return cost
}

// handledSize is what the partitions take of what members share.
func (g *group) handledSize() (size int64) {
	for _, p := range g.used() {
		if size += partCost; p.live != nil {
			size += liveCost
		}
	}
	return size
}
