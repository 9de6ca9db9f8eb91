// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"flag"
	"os"
	"testing"
)

var (
	seeds = flag.Int("seeds", defaultSeeds, "how many seeds to play")
	first = flag.Uint64("first", 1, "the first of them")
	one   = flag.Uint64("seed", 0, "play this seed alone and print its trace")
	turns = flag.Int("turns", 1200, "how long to play each")
)

// enoughSeeds is with how many seeds everything should have happened.
const enoughSeeds = 18

// TestGroups plays many seeds, some of them twice: if the traces differ, a failure cannot
// be reproduced.
func TestGroups(t *testing.T) {
	if *one != 0 {
		if _, err := run(t.Context(), *one, *turns, os.Stdout); err != nil {
			t.Fatal(err)
		}
		return
	}
	var all result
	for i := range *seeds {
		seed := *first + uint64(i)
		r, err := run(t.Context(), seed, *turns, nil)
		if err != nil {
			t.Errorf("%v\nreplay with: go test ./internal/sim/groups -run Groups -seed %d -turns %d", err, seed, *turns)
			continue
		}
		if i%10 == 0 {
			if again, err := run(t.Context(), seed, *turns, nil); err != nil || again.Trace != r.Trace {
				t.Errorf("seed %d: two runs, two traces (%v)", seed, err)
			}
		}
		all.add(r)
	}
	t.Logf("%d seeds: %+v", *seeds, all.counts())
	if *seeds >= enoughSeeds && *turns >= 1200 && !t.Failed() {
		for name, n := range all.counts() {
			if n == 0 {
				t.Errorf("%s never happened", name)
			}
		}
	}
}

func (r *result) add(x result) {
	r.Grants += x.Grants
	r.Moves += x.Moves
	r.Accepted += x.Accepted
	r.Fenced += x.Fenced
	r.Rewinds += x.Rewinds
	r.Crashes += x.Crashes
	r.Snapshots += x.Snapshots
	r.Refused += x.Refused
	r.Zombies += x.Zombies
	r.Won += x.Won
	r.LostClaims += x.LostClaims
	r.Quiet += x.Quiet
	r.Full += x.Full
	r.Taken += x.Taken
	r.Paused += x.Paused
}

func (r *result) counts() map[string]int {
	return map[string]int{
		"grants": r.Grants, "moves for one more": r.Moves, "checkpoints accepted": r.Accepted, "fenced": r.Fenced,
		"rewinds": r.Rewinds, "crashes": r.Crashes, "snapshots": r.Snapshots, "refused on a full disk": r.Refused,
		"fenced after a silence": r.Zombies, "claims that won": r.Won, "claims that lost": r.LostClaims, "quiet": r.Quiet,
		"full": r.Full, "taken": r.Taken, "paused": r.Paused,
	}
}
