// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"fmt"
	"time"
)

// State says whether an objective is met.
type State uint8

// The states. They are in snapshots and never change.
const (
	NoObjective State = iota // the class has no objective
	Met                      // neither window has a burn rate of 1 or more
	AtRisk                   // one of them has
	Missed                   // both have
)

var stateNames = [...]string{"none", "met", "at risk", "missed"}

// String returns the state in words.
func (s State) String() string { return stateNames[s] }

// MarshalText writes the state in words.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a state in words.
func (s *State) UnmarshalText(text []byte) error {
	for i, name := range stateNames {
		if name == string(text) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("objective: %q is no state", text)
}

// Subject says what a Change is about.
type Subject string

// The subjects.
const (
	OfObjective  Subject = "objective"
	OfRate       Subject = "expected rate"
	OfSaturation Subject = "saturation" // of a whole queue: at risk while it lasts; reported by the owner of the queue
	OfDamage     Subject = "damage"     // messages that could not be read; reported by the owner of the queue
)

// Change is a change of a state.
type Change struct {
	At      time.Time `json:"at"`
	Subject Subject   `json:"subject"`
	Class   uint8     `json:"-"`
	Name    string    `json:"class"`
	From    State     `json:"from"`
	To      State     `json:"to"`
	Why     string    `json:"why"`
}

// Tick updates everything to now and returns the states that have changed since
// the last call, by class. Call it about every second, after Observe.
func (m *Meter) Tick(now time.Time) []Change {
	at := now.UnixNano()
	if m.rotated == 0 {
		m.rotated = at
	}
	rotate := at-m.rotated >= int64(recentFor)
	if rotate {
		m.rotated = at
	}
	var changes []Change
	for _, c := range m.classes {
		if rotate && c.wait != nil {
			c.wait.rotate()
			c.service.rotate()
			c.total.rotate()
		}
		changes = c.updateStates(now, changes)
	}
	return changes
}

// updateStates updates the states of a class and appends the changes.
func (c *class) updateStates(now time.Time, changes []Change) []Change {
	if c.Wait > 0 {
		c.outcomes.advance(now.UnixNano(), c.bucketLength)
		b := c.burn(now)
		if next := b.state(); next != c.state {
			changes = append(changes, Change{now, OfObjective, c.number, c.Name, c.state, next, c.why(b)})
			c.state = next
		}
	}
	if next := c.assessRate(now); next != c.rateWatch.state {
		changes = append(changes, Change{now, OfRate, c.number, c.Name, c.rateWatch.state, next, c.explainRate(now)})
		c.rateWatch.state = next
	}
	return changes
}

// burn contains the burn rates of the two windows: at 1 exactly as many
// messages are late as may be.
type burn struct {
	short, long float64
	overdue     float64 // messages that have waited longer than the objective allows
}

func (b burn) state() State {
	switch {
	case b.short >= 1 && b.long >= 1:
		return Missed
	case b.short >= 1 || b.long >= 1:
		return AtRisk
	}
	return Met
}

func (c *class) burn(now time.Time) burn {
	overdue := c.overdue(now)
	allowed := 1 - c.Target
	return burn{
		short:   c.outcomes.short().lateShare(overdue) / allowed,
		long:    c.outcomes.long.lateShare(overdue) / allowed,
		overdue: overdue,
	}
}

// overdue returns how many of the ready messages have waited longer than the
// objective allows. Only the age of the oldest is known, so the arrivals are
// assumed to be evenly distributed since then. Without them the objective of a
// queue without consumers would be met: no message would ever start late.
func (c *class) overdue(now time.Time) float64 {
	if c.backlog.Waiting <= 0 || c.backlog.Oldest.IsZero() {
		return 0
	}
	age := now.Sub(c.backlog.Oldest)
	if age <= c.Wait {
		return 0
	}
	return max(1, float64(c.backlog.Waiting)*(1-float64(c.Wait)/float64(age)))
}

func (c *class) why(b burn) string {
	short := c.bucketLength * shortBuckets
	text := fmt.Sprintf("%s of the messages of the last %v and %s of those of the last %v started within %v; the objective is %s",
		percent(1-b.short*(1-c.Target)), brief(short), percent(1-b.long*(1-c.Target)), brief(short*longBuckets/shortBuckets), c.Wait, percent(c.Target))
	if b.overdue >= 1 {
		text += fmt.Sprintf("; about %.0f waiting messages are late already", b.overdue)
	}
	return text
}

func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }

// brief drops the zeros that time.Duration ends in: 5m, not 5m0s.
func brief(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if n := len(s) - len(zero); n > 0 && s[n:] == zero {
			s = s[:n+1]
		}
	}
	return s
}
