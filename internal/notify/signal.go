// SPDX-License-Identifier: Apache-2.0

package notify

// Signal is a channel of capacity 1. It is made with New.
type Signal chan struct{}

// New returns a signal that has not been given.
func New() Signal { return make(Signal, 1) }

// Notify wakes the receiver, now or when it next receives.
func (s Signal) Notify() {
	select {
	case s <- struct{}{}:
	default: // the receiver has not seen the last one, and will look
	}
}
