// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// delayFor is how long a command that is delayed waits at most until it is tried again.
// The journal tells when it is no longer busy, but not if it was so only for a moment.
const delayFor = 10 * time.Millisecond

// delay keeps a command that the journal has no space for at the moment.
func (e *Engine) delay(c Command) bool {
	if len(e.delayed) >= e.mail.limit {
		return false
	}
	if len(e.delayed) == 0 {
		e.delayedUntil = e.now.Add(delayFor)
	}
	e.delayed = append(e.delayed, c)
	return true
}

// resume applies the commands that are delayed, until the journal is busy again.
func (e *Engine) resume() {
	delayed := e.delayed
	e.delayed = nil
	n := 0
	for n < min(len(delayed), maxTake) && len(e.delayed) == 0 && !e.stuck {
		delayed[n].Apply(&e.tx)
		e.commitIfFull()
		n++
	}
	if len(e.delayed) == 0 {
		e.delayedUntil = e.now // the rest has its turn in the next step
	}
	e.delayed = append(e.delayed, delayed[n:]...)
}
