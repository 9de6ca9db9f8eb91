// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os/exec"
	"strings"
	"testing"
)

// engineNever are the packages that the engine must not reach, not even through
// others: it drives machines, and does not know what they are for.
var engineNever = []string{"queue", "stream", "group", "message", "entity", "policy", "ordering", "objective", "queueserver", "broker"}

func TestEngineKnowsNoQueues(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"/internal/engine").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Fields(string(out))
	if faults := reached(found, engineNever); len(faults) > 0 {
		t.Errorf("the engine reaches %v", faults)
	}
	if len(found) < 10 {
		t.Errorf("go list names %d packages; the test shows nothing", len(found))
	}
	if got := reached(append(found, module+"/internal/queue/entries"), engineNever); len(got) != 1 {
		t.Errorf("a package below queue is not noticed: %v", got)
	}
}

// reached returns those of the packages that are ours and named in never, or below.
func reached(pkgs, never []string) []string {
	var faults []string
	for _, p := range pkgs {
		if name := short(p); name != "" && isBelow(name, never) {
			faults = append(faults, name)
		}
	}
	return faults
}
