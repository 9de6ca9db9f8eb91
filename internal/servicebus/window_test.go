// SPDX-License-Identifier: Apache-2.0

package servicebus

import "testing"

func TestWindowFollowsTheSizeOfMessages(t *testing.T) {
	var w window
	send := func(count, size int) (last uint32, changes int) {
		for range count {
			if n, changed := w.after(size); changed {
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
		{"a few small ones", senderWindow - 1, 256, 0},
		{"a large one among them", 1, smallSize + 1, 0},
		{"a few more", senderWindow - 1, smallSize, 0},
		{"many in a row", 1, 256, wideWindow},
		{"and more", 10 * senderWindow, 256, 0},
		{"a large one", 1, smallSize + 1, senderWindow},
		{"another", 1, smallSize + 1, 0},
		{"many small ones again", senderWindow, 1, wideWindow},
	} {
		got, changes := send(step.count, step.size)
		if got != step.want || changes > 1 {
			t.Errorf("%s: window %d, changed %d times, want %d", step.name, got, changes, step.want)
		}
	}
	if wideWindow*smallSize >= maxPending {
		t.Errorf("a wide window of small messages is more than the %d bytes that may wait", maxPending)
	}
}
