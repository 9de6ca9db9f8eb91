// SPDX-License-Identifier: Apache-2.0

package group

import "github.com/triagemq/triagemq/internal/machine"

// tolerance is how a replay goes on without records that a repair has dropped. Grants may be
// lost with them. So epochs rise by more than can have been lost, and fence their owners.
type tolerance struct {
	on      bool
	missing int // owners that are not known
}

// lostEpochs is more grants of a partition than are lost.
const lostEpochs = 1 << 20

var _ machine.Tolerant = (*Groups)(nil)

// Tolerate implements [machine.Tolerant].
func (s *Groups) Tolerate() {
	s.restore.on = true
	s.floor = max(s.floor, lostEpochs)
}

// Lost implements [machine.Tolerant].
func (s *Groups) Lost() {
	s.restore.on = true
	s.floor = min(s.floor+lostEpochs, maxEpoch)
	for _, g := range s.list {
		for _, p := range g.used() {
			if p.epoch > 0 {
				p.epoch = min(p.epoch+lostEpochs, maxEpoch)
			}
		}
	}
}

// Missing implements [machine.Tolerant].
func (s *Groups) Missing() int { return s.restore.missing }

// EndReplay implements [machine.Tolerant].
func (s *Groups) EndReplay() {
	s.restore.loading = false
	s.mend()
}

// mend frees the partitions whose owners are not known.
func (s *Groups) mend() {
	for _, g := range s.list {
		for _, p := range g.used() {
			if p.owner != "" && g.member(p.owner) == nil {
				p.release()
				s.restore.missing++
			}
		}
	}
}
