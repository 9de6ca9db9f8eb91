// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"math"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue"
)

// What a caller that steps a shard by hand needs beside Step; see also Manual. None of
// it is for use while Run is running.

// Failed returns why the shard can go no further, nil while it can.
func (s *Shard) Failed() error { return s.failed }

// Stuck reports whether the shard waits for space on the disk, and does nothing else.
func (s *Shard) Stuck() bool { return s.stuck }

// Posted returns how many operations wait in the mailbox.
func (s *Shard) Posted() int {
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
	return len(s.mail.ops) - s.mail.head
}

// Lookups returns how often a reader has asked where a body was moved to. Each needs
// a step for its answer.
func (s *Shard) Lookups() uint64 { return s.lookups.Load() }

// Snapshots returns how many snapshots were begun, earlier lives included.
func (s *Shard) Snapshots() uint64 { return s.snapshot.number }

// Check compares everything the shard counts with what its machines hold.
func (s *Shard) Check() error {
	live := make(map[uint64]uint64)
	for _, e := range s.sorted() {
		for _, sl := range e.parts {
			if err := sl.q.Check(); err != nil {
				return fmt.Errorf("queue %d of %q: %w", sl.part, e.Name, err)
			}
			machine.AllRefs(sl.q, func(ref queue.Ref) { live[s.live.blockOf(ref)] += uint64(ref.Size) })
		}
	}
	for _, d := range s.dropped {
		rest := *d
		rest.free(math.MaxInt, func(ref queue.Ref) { live[s.live.blockOf(ref)] += uint64(ref.Size) })
	}
	for b, u := range s.live.blocks {
		if u.live != live[b] {
			return fmt.Errorf("invariant 2: block %d counts %d live bytes, found %d", b, u.live, live[b])
		}
		delete(live, b)
	}
	for b, n := range live {
		return fmt.Errorf("invariant 2: block %d has %d live bytes and is not counted", b, n)
	}
	for i := 1; i < len(s.waiting); i++ {
		if s.waiting[i].at < s.waiting[i-1].at {
			return fmt.Errorf("invariant 1: %d waits behind %d", s.waiting[i].at, s.waiting[i-1].at)
		}
	}
	return nil
}
