// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/vfs"
)

// fill creates a store with some messages, and some that were completed.
func fill(t *testing.T) (*vfs.Mem, map[string]bool) {
	t.Helper()
	disk, want := vfs.NewMem(), map[string]bool{}
	n, err := open(t.Context(), disk)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		s, err := n.OpenSender(queues[i%len(queues)], broker.SenderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("message-", i)
		answer := make(chan error, 1)
		s.Send([]*message.Message{compose(id, uint8(i%10))}, func(err error) { answer <- err })
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
		want[id] = true
	}
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := disk.SyncDir("."); err != nil { // clones are to have every file
		t.Fatal(err)
	}
	return disk, want
}

// used returns the part of a file that is not zero: a flip in the rest of a
// segment that was made ahead of need proves little.
func used(t *testing.T, disk *vfs.Mem, name string) int64 {
	t.Helper()
	f, err := disk.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && size > 0 {
		t.Fatal(err)
	}
	for size > 0 && b[size-1] == 0 {
		size--
	}
	return size
}

// TestFlippedBitsAreNeverServed flips one bit of a store, starts a broker on it
// and drains it. Either the broker reports that the store is damaged, or every
// message is delivered as it was sent.
func TestFlippedBitsAreNeverServed(t *testing.T) {
	const flips = 2000
	disk, want := fill(t)
	names, err := disk.List(".")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 8))
	refused, unread, harmless := 0, 0, 0
	for refused+unread+harmless < flips {
		name := names[rng.IntN(len(names))]
		size := used(t, disk, name)
		if size == 0 {
			continue
		}
		hurt := disk.CrashClone(0)
		bit := rng.Int64N(size * 8)
		if err := vfs.NewFault(hurt).FlipBit(name, bit); err != nil {
			t.Fatal(err)
		}
		got, started, err := drainAll(t.Context(), hurt)
		switch {
		case err != nil && !errors.Is(err, journal.ErrCorrupt):
			t.Fatalf("bit %d of %s: %v, want an error that says it is damage", bit, name, err)
		case err != nil && started:
			unread++
		case err != nil:
			refused++
		default:
			harmless++
			if len(got) != len(want) {
				t.Fatalf("bit %d of %s: %d messages were delivered and no damage was reported, want %d", bit, name, len(got), len(want))
			}
		}
		for _, f := range got {
			if !want[f.id] {
				t.Fatalf("bit %d of %s: message %q was never sent", bit, name, f.id)
			}
		}
	}
	t.Logf("%d flips: %d refused at the start, %d when read, %d harmless; none served", refused+unread+harmless, refused, unread, harmless)
}

// drainAll starts a broker, lists and drains it.
func drainAll(ctx context.Context, disk *vfs.Mem) (got []found, started bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n, err := open(ctx, disk)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	if _, err := n.list(ctx); err != nil {
		return nil, true, err
	}
	got, err = n.drain(ctx)
	return got, true, err
}
