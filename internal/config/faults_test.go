// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryFaultAtOnce reads testdata/*.yaml, each of which has many faults,
// and compares the report with the .txt file of the same name.
func TestEveryFaultAtOnce(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			_, err = Load(file)
			if err == nil {
				t.Fatal("it was accepted")
			}
			if got := err.Error() + "\n"; got != string(want) {
				t.Errorf("faults\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Faults that other packages find are added at the end, and reported at their
// position.
func TestFaultsAreReportedInTheOrderOfTheFile(t *testing.T) {
	fs := Faults{{File: "f", Line: 9, Column: 2, Problem: "c"}, {File: "f", Line: 2, Column: 5, Problem: "b"}, {File: "f", Line: 2, Column: 1, Problem: "a"}}
	want := strings.Join([]string{fs[2].Error(), fs[1].Error(), fs[0].Error()}, "\n")
	if got := fs.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
