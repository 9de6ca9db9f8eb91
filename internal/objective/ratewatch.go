// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"fmt"
	"time"
)

// A class is behind its expected rate when it completes less than nine tenths
// of it, averaged over a minute, for a minute in which messages were ready all
// the time. An empty queue is not behind: there is nothing to do.
const (
	rateShare = 0.9
	rateAfter = time.Minute
)

// rateWatch compares the completion rate with the expected rate.
type rateWatch struct {
	state State
	since time.Time // when it fell behind; zero is not behind
}

func (c *class) assessRate(now time.Time) State {
	if c.Expected <= 0 {
		return NoObjective
	}
	behind := c.backlog.Waiting > 0 && c.completed.Estimate(now) < rateShare*c.Expected
	switch {
	case !behind:
		c.rateWatch.since = time.Time{}
		return Met
	case c.rateWatch.since.IsZero():
		c.rateWatch.since = now
	}
	if now.Sub(c.rateWatch.since) < rateAfter {
		return max(c.rateWatch.state, Met)
	}
	return Missed
}

func (c *class) explainRate(now time.Time) string {
	if c.Expected <= 0 {
		return "no rate is expected any more"
	}
	return fmt.Sprintf("%.3g messages per second are worked off, %.3g are expected, %d are waiting",
		c.completed.Estimate(now), c.Expected, c.backlog.Waiting)
}
