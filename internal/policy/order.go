// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/ordering"
)

// Order returns the order of the policy. Classes that share a level are one to the
// queue: the shortest of their objectives applies, and their weights add up.
func (p *Policy) Order() ordering.Order {
	o := ordering.Order{Discipline: p.Discipline, LevelOrder: p.LevelOrder, Fair: p.FairKey != ""}
	switch p.Discipline {
	case ordering.Aging:
		o.AgingInterval, o.AgingMaxLevel = p.Aging.Interval, ordering.Level(p.Aging.MaxLevel)
	case ordering.Deadline:
		o.Objective = p.objectives()
	case ordering.Weighted:
		o.Weight = p.weights()
	}
	if p.saturable() {
		o.Saturation, o.Weight = p.Saturation, p.weights()
	}
	if !o.Fair {
		return o
	}
	o.DefaultShare = p.KeyDefaults.machine()
	for _, s := range p.Keys {
		o.Shares = append(o.Shares, s.Inherit(p.KeyDefaults).machine())
	}
	return o
}

// objectives returns the shortest objective of each level.
func (p *Policy) objectives() []time.Duration {
	var all [256]time.Duration
	for _, c := range p.Classes {
		if o := &all[c.Level]; c.Objective.Wait > 0 && (*o == 0 || c.Objective.Wait < *o) {
			*o = c.Objective.Wait
		}
	}
	return cut(all[:])
}

// weights returns the weight of each level that a class has.
func (p *Policy) weights() []uint32 {
	var all [256]uint64
	for _, c := range p.Classes {
		all[c.Level] += uint64(max(c.Weight, 1))
	}
	ws := make([]uint32, len(all))
	for l, w := range all {
		ws[l] = uint32(min(w, math.MaxUint32))
	}
	return cut(ws)
}

// cut removes the zeros at the end.
func cut[T comparable](all []T) []T {
	var zero T
	n := len(all)
	for n > 0 && all[n-1] == zero {
		n--
	}
	return all[:n:n]
}

// Inherit sets the unset fields of a share to the defaults.
func (s Share) Inherit(d Share) Share {
	if s.Weight == 0 {
		s.Weight = d.Weight
	}
	if s.Concurrency == 0 {
		s.Concurrency = d.Concurrency
	}
	if s.Rate == (Rate{}) {
		s.Rate = d.Rate
	}
	if s.DeliveryRate == (Rate{}) {
		s.DeliveryRate = d.DeliveryRate
	}
	return s
}

// machine returns the share in the type of the queue.
func (s Share) machine() ordering.Share {
	k := ordering.Share{Key: s.Key, Weight: max(s.Weight, 1), Cap: s.Concurrency}
	if s.DeliveryRate.PerSecond() > 0 {
		k.Rate, k.Burst = s.DeliveryRate.PerSecond(), uint32(min(s.DeliveryRate.Burst(), math.MaxUint32))
	}
	return k
}
