// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

// golden is where the records of version 1 are: a record in a line, and at the end the
// index of a block and a digest of the state.
const golden = "testdata/records/v1.hex"

// everyKind writes a record of each kind and returns them as lines of hexadecimal digits.
func everyKind() (p *Partition, lines []string) {
	var out machine.Effects
	p = New()
	at := func(n int) time.Time { return epochStart.Add(time.Duration(n) * time.Second) }
	p.Retain(Retention{For: time.Minute})
	p.Create(&out)
	p.Append(at(0), Arrival{Body: machine.Ref{At: 1000, Size: 300}, Count: 100}, &out)
	by, _ := p.OpenProducer(Producer{-1, -1, -1}, &out)
	by.Seq = 1
	p.Append(at(1), Arrival{Body: machine.Ref{At: 1400, Size: 25_600}, Count: 3, Producer: &by}, &out)
	index := p.AppendIndex(nil)
	p.Seal(machine.Ref{At: 30_000, Size: uint32(len(index))}, &out)
	p.Append(at(90), Arrival{Body: machine.Ref{At: 70_000, Size: 10}, Count: 1}, &out)
	p.Append(at(91), Arrival{Body: machine.Ref{At: 70_100, Size: 20}, Count: 1}, &out)
	p.Seal(machine.Ref{At: 71_000, Size: 13}, &out)
	p.Append(at(92), Arrival{Body: machine.Ref{At: 1 << 40, Size: 1 << 20}, Count: 7}, &out)
	p.Tick(at(100), &out)
	p.Snapshot().Step(&machine.Budget{Items: 10, Bytes: 1 << 20}, nil, &out)
	for _, rec := range out.Records() {
		lines = append(lines, hex.EncodeToString(rec))
	}
	return p, append(lines, "index "+hex.EncodeToString(index), fmt.Sprintf("digest %x", sha256.Sum256([]byte(describe(p)))))
}

// The bytes of version 1 never change: what is written today, and what is read.
func TestRecordsOfVersion1(t *testing.T) {
	raw, err := os.ReadFile(golden)
	if err != nil {
		t.Error(err)
	}
	live, lines := everyKind()
	if got := strings.Join(lines, "\n") + "\n"; got != string(raw) {
		t.Fatalf("%s: want\n%s\ngot\n%s", golden, raw, got)
	}
	kinds := make(map[byte]bool)
	for from := range 2 { // from the creation on, and from the snapshot
		p := New()
		for _, line := range lines[from*(len(lines)-4) : len(lines)-2] {
			rec, err := hex.DecodeString(line)
			if err != nil {
				t.Fatal(err)
			}
			kinds[rec[0]] = true
			if err := p.Replay(rec, new(machine.Effects)); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		if got, want := describe(p), describe(live); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if len(kinds) != kindState {
		t.Errorf("kinds %v", kinds)
	}
}
