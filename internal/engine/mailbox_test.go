// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
)

// numbered is a command that is nothing but its number.
type numbered struct{ n int }

func (numbered) Apply(*Tx)  {}
func (numbered) Fail(error) {}

// A3: a step takes a bounded number of commands, in order, none twice, whatever
// is posted or put back in between.
func TestMailboxIsTakenInBoundedPieces(t *testing.T) {
	m := newMailbox(1 << 20)
	posted, next := 0, 0
	post := func(n int) {
		for range n {
			if err := m.tryPush(numbered{posted}); err != nil {
				t.Fatal(err)
			}
			posted++
		}
	}
	post(3*maxTake + 7)
	for round := 0; next < posted; round++ {
		if round < 3 {
			post(maxTake / 2)
		}
		select {
		case <-m.wake:
		default:
			t.Fatalf("%d operations left and no receiver was woken", posted-next)
		}
		ops, _ := m.take(maxTake)
		if len(ops) > maxTake {
			t.Fatalf("took %d operations, want at maxTake %d", len(ops), maxTake)
		}
		if round == 1 { // the disk was full after two of them
			m.putBack(ops[2:])
			m.report(journal.Status{})
			ops = ops[:2]
		}
		for _, o := range ops {
			if got := o.(numbered).n; got != next {
				t.Fatalf("took operation %d, want %d", got, next)
			}
			next++
		}
	}
}

func TestFullMailboxRefusesWhatAddsWork(t *testing.T) {
	m := newMailbox(maxTake + 2)
	for range maxTake + 2 {
		if err := m.tryPush(numbered{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.tryPush(numbered{}); err != ErrBusy {
		t.Fatalf("one too many: %v, want %v", err, ErrBusy)
	}
	m.take(maxTake)
	if err := m.tryPush(numbered{}); err != nil {
		t.Fatalf("after a step has taken some: %v", err)
	}
}

// Commands that write much are taken a few at a time: a step has a bound whatever they are.
func TestStepsTakeFewLargeCommands(t *testing.T) {
	for _, tt := range []struct {
		commands int
		bytes    uint64
		want     int
	}{
		{0, 0, maxTake},
		{512, 100 << 10, maxTake},
		{512, 8 << 20, 128},
		{1, 64 << 20, minTake},
	} {
		if got := nextTake(tt.commands, tt.bytes); got != tt.want {
			t.Errorf("after %d commands of %d bytes: %d, want %d", tt.commands, tt.bytes, got, tt.want)
		}
	}
}
