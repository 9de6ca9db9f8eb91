// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"bufio"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Records that earlier versions wrote stay readable. Each file is a log, a
// record in a line, and at its end the digest that the queue had then.
func TestRecordsOfEarlierVersions(t *testing.T) {
	files, err := filepath.Glob("testdata/records/*.hex")
	if err != nil || len(files) == 0 {
		t.Fatalf("no records to read: %v", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		q := New(sampleConfig(), 2)
		var out Effects
		for lines := bufio.NewScanner(f); lines.Scan(); {
			want, last := strings.CutPrefix(lines.Text(), "digest ")
			b, err := hex.DecodeString(want)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if last {
				if got := q.StateHash(epochStart); hex.EncodeToString(got[:]) != want {
					t.Errorf("%s: got %x, want %s", name, got, want)
				}
				break
			}
			if err := q.Replay(b, &out.Effects); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if err := q.Check(); err != nil || !q.Restored() {
			t.Errorf("%s: %v, whole %t", name, err, q.Restored())
		}
	}
}
