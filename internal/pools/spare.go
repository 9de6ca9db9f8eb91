// SPDX-License-Identifier: Apache-2.0

package pools

import "slices"

// full is how many pools are full, by their sources: for those that work only while no other
// is. A pool counts for those at the same sources, and for those that say they are beside
// one. So nobody keeps pools idle whose messages he could not take, unless they ask for it.
type full map[string]int

// isFull reports whether all slots of a pool are busy, and others should leave it the
// machine. One that itself waits for spare capacity does not count.
func (p *pool) isFull() bool {
	slots, busy := 0, 0
	for _, i := range p.instances {
		if i.Background {
			return false
		}
		slots, busy = slots+i.Slots, busy+min(i.Busy, i.Slots)
	}
	return slots > 0 && busy >= slots
}

// judge notes for which sources a pool is full.
func (r *Registry) judge(p *pool) {
	var at []string
	if p.isFull() {
		at = p.sources
	}
	if slices.Equal(at, p.fullAt) {
		return
	}
	if r.full == nil {
		r.full = make(full)
	}
	for _, s := range p.fullAt {
		if r.full[s]--; r.full[s] == 0 {
			delete(r.full, s)
		}
	}
	for _, s := range at {
		r.full[s]++
	}
	p.fullAt = at
}

// spare reports whether no other pool is full that counts for a pool.
func (r *Registry) spare(p *pool, beside []string) bool {
	for _, s := range slices.Concat(p.sources, beside) {
		n := r.full[s]
		if slices.Contains(p.fullAt, s) {
			n-- // itself
		}
		if n > 0 {
			return false
		}
	}
	return true
}
