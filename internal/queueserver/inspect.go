// SPDX-License-Identifier: Apache-2.0

package queueserver

// Lookups returns how often a reader has asked where a body was moved to. Each needs
// a step for its answer. It is for a caller that steps a shard by hand.
func (s *Shard) Lookups() uint64 { return s.lookups.Load() }
