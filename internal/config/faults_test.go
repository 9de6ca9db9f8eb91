// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryFaultAtOnce reads testdata/*.yaml, each of which is full of faults, and
// compares what is said about them with the .txt beside it.
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
