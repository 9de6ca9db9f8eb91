// SPDX-License-Identifier: Apache-2.0

package servicebus

const (
	// senderWindow is the credit that Azure gives a sender. The JavaScript SDK
	// gives up if it has none a second after the attach.
	senderWindow = 1000
	// wideWindow is what one gets that sends many small messages: a thousand of
	// them are used up before a sync has settled the first, and the sender waits.
	wideWindow = 5000
	// smallSize is what a small message has at most. A wide window of them stays
	// well below maxPending.
	smallSize = 8 << 10
)

// window decides how much credit a sender has, by the size of what it sends. The
// zero value has senderWindow.
type window struct {
	small int // messages in a row that were small
}

// after counts a delivery and returns the window if it changes.
func (w *window) after(size int) (n uint32, changed bool) {
	if size <= smallSize {
		w.small++
		return wideWindow, w.small == senderWindow
	}
	wide := w.small >= senderWindow
	w.small = 0
	return senderWindow, wide
}
