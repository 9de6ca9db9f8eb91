// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"fmt"
	"time"
)

// A class is behind its expected rate when less than nine tenths of it are worked
// off, averaged over a minute, for a minute in which messages were waiting all
// the time: a queue that is empty is slow only because there is nothing to do.
const (
	paceShare = 0.9
	paceAfter = time.Minute
)

// pace watches the expected rate.
type pace struct {
	state State
	since time.Time // when it was first seen behind; zero is not behind
}

func (c *class) judgePace(now time.Time) State {
	if c.Expected <= 0 {
		return NoObjective
	}
	behind := c.backlog.Waiting > 0 && c.completed.Estimate(now) < paceShare*c.Expected
	switch {
	case !behind:
		c.pace.since = time.Time{}
		return Met
	case c.pace.since.IsZero():
		c.pace.since = now
	}
	if now.Sub(c.pace.since) < paceAfter {
		return max(c.pace.state, Met)
	}
	return Missed
}

func (c *class) whyPace(now time.Time) string {
	if c.Expected <= 0 {
		return "no rate is expected any more"
	}
	return fmt.Sprintf("%.3g messages per second are worked off, %.3g are expected, %d are waiting",
		c.completed.Estimate(now), c.Expected, c.backlog.Waiting)
}
