// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"testing"

	"github.com/triagemq/triagemq/internal/budget"
)

// What a sender may have on its way is bounded in
// bytes.
func TestWindowFollowsTheSizeOfMessages(t *testing.T) {
	w := NewWindow(budget.UnsyncedLimit / 4)
	send := func(count, size int) (last uint32, changes int) {
		for range count {
			if n, changed := w.After(size); changed {
				last = n
				changes++
			}
		}
		return last, changes
	}
	for _, step := range []struct {
		name        string
		count, size int
		want        uint32 // zero is no change
	}{
		{"a few small ones", SenderCredit - 1, 256, 0},
		{"a larger one among them", 1, 16 << 10, 0},
		{"a few more", SenderCredit - 1, smallSize, 0},
		{"many in a row", 1, 256, wideWindow},
		{"and more", 10 * SenderCredit, 256, 0},
		{"a larger one", 1, 8 << 10, 1024},
		{"another", 1, 8 << 10, 0},
		{"many small ones again", SenderCredit, 1, wideWindow},
		{"a large one", 1, 200_000, 32},
		{"a few small ones", SenderCredit - 1, 0, 0},
		{"one as large", 1, 256 << 10, 0},
		{"many not so large", SenderCredit, 100_000, 64},
		{"a giant", 1, 60 << 20, narrowWindow},
		{"many small ones", SenderCredit - 1, 1, 0},
		{"the last of them larger", 1, 30_000, 256},
	} {
		got, changes := send(step.count, step.size)
		if got != step.want || changes > 1 {
			t.Errorf("%s: window %d, changed %d times, want %d", step.name, got, changes, step.want)
		}
	}
}
