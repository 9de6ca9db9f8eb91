// SPDX-License-Identifier: Apache-2.0

package azure

import "math/bits"

const (
	// wideWindow is what one gets that sends many small messages: a thousand of
	// them are used up before a sync has settled the first, and the sender waits.
	wideWindow = 5000
	// narrowWindow is what one gets at least, however large its messages are.
	narrowWindow = 2
	// smallSize is what a small message has at most.
	smallSize = 1 << 10
)

// Window decides how much credit a sender has, by the size of what it sends: many
// small messages, few large ones. Credit counts messages, and what it is meant to
// bound is memory. A larger message narrows the window at once; it widens when a
// thousand smaller ones have come in a row.
type Window struct {
	credit uint32
	bytes  int64 // of as many messages

	class   int // of sizes, by which the window goes: 0 is small, each next one twice as large
	smaller int // messages in a row of a class below
	largest int // class among those
}

// NewWindow returns a window of SenderCredit, for a connection that may have so
// much memory charged.
func NewWindow(limit int64) Window {
	w := Window{credit: SenderCredit, bytes: limit / 2}
	w.class = classOf(int(w.bytes / SenderCredit))
	return w
}

// classOf returns the class of a message's size.
func classOf(size int) int { return bits.Len(uint(max(size-1, 0) / smallSize)) }

// After counts a delivery and returns the window if it changes.
func (w *Window) After(size int) (n uint32, changed bool) {
	class := classOf(size)
	switch {
	case class > w.class:
		return w.become(class)
	case class == w.class:
		w.smaller, w.largest = 0, 0
		return w.credit, false
	}
	w.smaller++
	w.largest = max(w.largest, class)
	if w.smaller < SenderCredit {
		return w.credit, false
	}
	return w.become(w.largest)
}

// become makes the window that of a class.
func (w *Window) become(class int) (n uint32, changed bool) {
	was := w.credit
	w.class, w.smaller, w.largest = class, 0, 0
	w.credit = uint32(min(max(w.bytes/(smallSize<<class), narrowWindow), wideWindow))
	return w.credit, w.credit != was
}
