// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
)

var update = flag.Bool("update", false, "write testdata/traces.txt anew")

// tracesFile has the digests of the traces of some seeds, one in a line.
const tracesFile = "testdata/traces.txt"

// A refactoring that does not change behaviour leaves the traces of all seeds
// as they are: a trace covers every answer, delivery and step of the clock, and
// the size of every commit. A change of behaviour is explained in the commit
// that runs this test with -update.
func TestTracesAreAsRecorded(t *testing.T) {
	const worlds, fronts = 50 / fewerTraces, 20 / fewerTraces
	var got strings.Builder
	for seed := uint64(1); seed <= worlds; seed++ {
		r, err := run(t.Context(), seed, *turns, nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "world %d %x\n", seed, r.Trace[:8])
	}
	for seed := uint64(1); seed <= fronts; seed++ {
		synctest.Test(t, func(t *testing.T) {
			r, err := runFront(t.Context(), seed, *turns, synctest.Wait, nil)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&got, "broker %d %x\n", seed, r.Trace[:8])
		})
	}
	if *update {
		if err := os.WriteFile(tracesFile, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(tracesFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(got.String()) {
		if !strings.Contains(string(want), line) {
			t.Errorf("got %s, recorded is something else", strings.TrimSpace(line))
		}
	}
}
