// SPDX-License-Identifier: Apache-2.0

package group

import "hash/fnv"

// replacedRuns are the runs of members whose place another run has taken. One of them that
// comes back, because it has not heard of that, is refused: the younger run wins. They are in
// memory only. After a restart a run that says that it comes back is compared with the one
// that is stored.
type replacedRuns struct {
	hashes [64]uint64 // of id and run; the oldest is forgotten first
	next   int
}

func hashOfRun(id, run string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(run))
	return h.Sum64()
}

// noteReplaced remembers a run whose place another has taken, if there is memory for it.
func (g *group) noteReplaced(id, run string) {
	if g.replaced == nil {
		if g.all.fits(replacedCost) != nil {
			return
		}
		g.replaced = new(replacedRuns)
		g.grow(replacedCost)
	}
	r := g.replaced
	r.hashes[r.next] = hashOfRun(id, run)
	r.next = (r.next + 1) % len(r.hashes)
}

// superseded reports whether another run has taken the place of one that wants to join.
func (g *group) superseded(as *Member) bool {
	if m := g.member(as.ID); as.Back && m != nil && m.Run != as.Run {
		return true
	}
	if g.replaced == nil {
		return false
	}
	hash := hashOfRun(as.ID, as.Run)
	for _, h := range g.replaced.hashes {
		if h == hash {
			return true
		}
	}
	return false
}
