// SPDX-License-Identifier: Apache-2.0

package queue

import "github.com/triagemq/triagemq/internal/machine"

// Effects collects what one or more commands did: records and bodies, as those of any
// machine, and the messages that left in a way that the owner must act on. The owner acts
// on it and then calls Reset; a command only appends. The zero value is ready for use.
type Effects struct {
	machine.Effects
	DeadLettered []DeadLetter // left for the dead letters, in order
	Expired      []Expired    // expired and removed, in order
}

// ResetLeft clears the lists of messages that left.
func (e *Effects) ResetLeft() {
	clear(e.DeadLettered) // releases their strings
	e.DeadLettered, e.Expired = e.DeadLettered[:0], e.Expired[:0]
}

// Reset clears everything and keeps the memory.
func (e *Effects) Reset() {
	e.ResetLeft()
	e.Effects.Reset()
}
