// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
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
		if _, err := run(t.Context(), *one, *turns, os.Stdout); err != nil {
			t.Fatal(err)
		}
		return
	}
	var mu sync.Mutex
	var all result // guarded by mu
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
					all.CrashChecks += r.CrashChecks
					all.Snapshots += r.Snapshots
					all.Full += r.Full
					all.Stuck += r.Stuck
					all.Refused += r.Refused
					all.Evicted += r.Evicted
					all.Recalls += r.Recalls
					all.Set += r.Set
					all.Returns += r.Returns
					all.Retries += r.Retries
					all.Saves += r.Saves
					all.Renewals += r.Renewals
					all.Survivors += r.Survivors
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d seeds: %d messages and entities made, %d taken, %d crashes and %d simulated ones, %d snapshots, %d times full and %d stuck, %d sends refused, %d messages evicted, %d recalled, %d returned undelivered, %d retries, %d states saved, %d locks renewed durably, %d locks that survived a crash, the clock set %d times",
		*seeds, all.Messages, all.Takes, all.Crashes, all.CrashChecks, all.Snapshots, all.Full, all.Stuck, all.Refused, all.Evicted, all.Recalls, all.Returns, all.Retries, all.Saves, all.Renewals, all.Survivors, all.Set)
}

// TestFront plays seeds against a whole broker, each in a bubble of its own.
func TestFront(t *testing.T) {
	for i := range (*seeds + 4) / 5 {
		seed := *first + uint64(i)
		var trace io.Writer
		if *one != 0 {
			seed, trace = *one, os.Stdout
		}
		var traces [2][32]byte
		for n := range traces {
			synctest.Test(t, func(t *testing.T) {
				r, err := runFront(t.Context(), seed, *turns, synctest.Wait, trace)
				if err != nil {
					t.Errorf("%v\nreplay with: go test ./internal/sim -run Front -seed %d -turns %d", err, seed, *turns)
				}
				traces[n] = r.Trace
			})
		}
		if traces[0] != traces[1] && !t.Failed() {
			t.Errorf("broker, seed %d: two runs, two traces", seed)
		}
		if *one != 0 {
			return
		}
	}
}

// playTwice runs a seed two times and compares the traces: if they differ, a
// failure cannot be reproduced.
func playTwice(t *testing.T, seed uint64) result {
	t.Helper()
	r, err := run(t.Context(), seed, *turns, nil)
	if err != nil {
		t.Errorf("%v\nreplay with: go test ./internal/sim -run Sim -seed %d -turns %d", err, seed, *turns)
		return r
	}
	again, err := run(t.Context(), seed, *turns, nil)
	if err != nil || again.Trace != r.Trace {
		t.Errorf("seed %d: two runs, two traces (%v)\nreplay with: go test ./internal/sim -run Sim -seed %d -turns %d", seed, err, seed, *turns)
	}
	return r
}
