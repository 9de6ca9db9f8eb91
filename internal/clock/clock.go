// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"sync"
	"time"
)

// lookAgain bounds what Until returns, because the wall clock may be set meanwhile.
const lookAgain = 10 * time.Second

// Clock is a [Steady] over the clocks of a machine, for use by any goroutine.
type Clock struct {
	read func() Reading

	mu     sync.Mutex
	steady *Steady // guarded by mu
}

// New returns a clock over the clocks that read shows; nil is those of the system.
func New(read func() Reading) *Clock {
	if read == nil {
		read = system()
	}
	return &Clock{read: read, steady: newSteady(read())}
}

// system returns a function that reads the clocks of the system.
func system() func() Reading {
	start := time.Now()
	return func() Reading {
		now := time.Now() // one call reads both clocks
		return Reading{Wall: now, Elapsed: now.Sub(start)}
	}
}

// Now returns the time. It never goes back.
func (c *Clock) Now() time.Time {
	r := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steady.At(r)
}

// Until returns how long to wait for a moment before the time is read again:
// never longer than until then, and perhaps shorter.
func (c *Clock) Until(t time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := t.Sub(c.steady.At(c.read()))
	if c.steady.off > 0 {
		d -= d / slew // we run faster, by a tenth
	}
	return min(max(d, 0), lookAgain)
}

// AtLeast makes the time be t or later from now on, as [Steady.AtLeast] does.
func (c *Clock) AtLeast(t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steady.At(c.read())
	return c.steady.AtLeast(t)
}

// State is how a clock and the wall clock get along.
type State struct {
	// Off is what the wall clock is ahead; negative if it is behind.
	Off time.Duration
	// Stepped is the sum of all forward steps, taken because the wall clock had
	// been ahead for long enough.
	Stepped time.Duration
	// Refused is how far ahead of the wall clock the latest time was that
	// AtLeast did not follow; zero if there was none.
	Refused time.Duration
}

// State reads the clocks and compares them.
func (c *Clock) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steady.At(c.read())
	return State{Off: c.steady.off, Stepped: c.steady.stepped, Refused: c.steady.refused}
}
