// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"os"
	"sync"
	"testing"
)

var (
	seeds = flag.Int("seeds", defaultSeeds, "how many seeds to play")
	first = flag.Uint64("first", 1, "the first of them")
	one   = flag.Uint64("seed", 0, "play this seed alone and print its trace")
	turns = flag.Int("turns", 200, "how long to play each")
)

// TestSim plays many seeds. Nothing in it runs at the same time as anything else,
// so that the race detector has little to find: with it there are fewer.
func TestSim(t *testing.T) {
	if *one != 0 {
		if _, err := Run(*one, *turns, os.Stdout); err != nil {
			t.Fatal(err)
		}
		return
	}
	var mu sync.Mutex
	var all Result // guarded by mu
	t.Run("seeds", func(t *testing.T) {
		const lanes = 4
		for lane := range lanes {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for i := lane; i < *seeds; i += lanes {
					r := playTwice(t, *first+uint64(i))
					mu.Lock()
					all.Messages += r.Messages
					all.Takes += r.Takes
					all.Crashes += r.Crashes
					all.Looks += r.Looks
					all.Snapshots += r.Snapshots
					all.Full += r.Full
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d seeds: %d messages and other things made, %d taken, %d crashes and %d looks at one, %d snapshots, %d times full",
		*seeds, all.Messages, all.Takes, all.Crashes, all.Looks, all.Snapshots, all.Full)
}

// playTwice plays a seed two times and compares the traces: what differs would
// make a failure impossible to look at again.
func playTwice(t *testing.T, seed uint64) Result {
	t.Helper()
	r, err := Run(seed, *turns, nil)
	if err != nil {
		t.Errorf("%v\nreplay with: go test ./internal/sim -run Sim -seed %d -turns %d", err, seed, *turns)
		return r
	}
	again, err := Run(seed, *turns, nil)
	if err != nil || again.Trace != r.Trace {
		t.Errorf("seed %d: two runs, two traces (%v)\nreplay with: go test ./internal/sim -run Sim -seed %d -turns %d", seed, err, seed, *turns)
	}
	return r
}
