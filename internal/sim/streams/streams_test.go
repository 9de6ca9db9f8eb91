// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"flag"
	"os"
	"testing"
)

var (
	seeds = flag.Int("seeds", defaultSeeds, "how many seeds to play")
	first = flag.Uint64("first", 1, "the first of them")
	one   = flag.Uint64("seed", 0, "play this seed alone and print its trace")
	turns = flag.Int("turns", 1500, "how long to play each")
)

// TestStreams plays many seeds, each twice: if the traces differ, a failure cannot be
// reproduced.
func TestStreams(t *testing.T) {
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
			t.Errorf("%v\nreplay with: go test ./internal/sim/streams -run Streams -seed %d -turns %d", err, seed, *turns)
			continue
		}
		if again, err := run(t.Context(), seed, *turns, nil); err != nil || again.Trace != r.Trace {
			t.Errorf("seed %d: two runs, two traces (%v)", seed, err)
		}
		all.Events += r.Events
		all.Read += r.Read
		all.Crashes += r.Crashes
		all.Snapshots += r.Snapshots
		all.Replays += r.Replays
		all.Again += r.Again
		all.Full += r.Full
		all.Stolen += r.Stolen
		all.Skipped += r.Skipped
	}
	t.Logf("%d seeds: %d events sent, %d read, %d batches sent again, %d crashes, %d replays compared, %d snapshots, %d times full, %d readers stolen, %d events skipped",
		*seeds, all.Events, all.Read, all.Again, all.Crashes, all.Replays, all.Snapshots, all.Full, all.Stolen, all.Skipped)
	if *seeds >= defaultSeeds && *turns >= 1500 && !t.Failed() && (all.Crashes == 0 || all.Snapshots == 0 || all.Again == 0 || all.Full == 0 || all.Stolen == 0 || all.Skipped == 0 || all.Read == 0) {
		t.Error("something never happened")
	}
}
