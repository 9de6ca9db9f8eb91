// SPDX-License-Identifier: Apache-2.0

package queue

import "github.com/triagemq/triagemq/internal/machine"

// Effects collects what one or more commands did: records and bodies, as those of any
// machine, and the messages that left in a way that their owner has to act on. Its owner
// acts on it and then calls Reset; a command only ever appends. The zero value is ready
// for use.
type Effects struct {
	machine.Effects
	DeadLettered []DeadLetter // left for the dead letters, in order
	Expired      []Expired    // left for good because their lives ended, in order
}

// ResetLeft forgets the messages that left.
func (e *Effects) ResetLeft() {
	clear(e.DeadLettered) // lets go of their strings
	e.DeadLettered, e.Expired = e.DeadLettered[:0], e.Expired[:0]
}

// Reset forgets everything and keeps the memory.
func (e *Effects) Reset() {
	e.ResetLeft()
	e.Effects.Reset()
}
