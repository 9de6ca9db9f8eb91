// SPDX-License-Identifier: Apache-2.0

package objective

import "time"

// Report is everything that is measured of a queue, for people and monitoring.
// Lengths of time are in seconds, rates per second.
type Report struct {
	At         time.Time         `json:"at"`
	Classes    []ClassReport     `json:"classes"`
	Operations []OperationReport `json:"operations"`
	// PerMessage is how many operations clients spent for each message worked
	// off, in all; zero if none was.
	PerMessage float64 `json:"operationsPerMessage"`
}

// ClassReport is what is measured of a class.
type ClassReport struct {
	Class uint8  `json:"number"`
	Name  string `json:"name"` // empty for the messages in no class

	Wait     Summary `json:"wait"`     // until the first delivery
	Service  Summary `json:"service"`  // from the last delivery until settled
	EndToEnd Summary `json:"endToEnd"` // from enqueued until settled

	Arrived   Flow `json:"arrived"`
	Completed Flow `json:"completed"`
	Died      Flow `json:"died"`
	Refused   Flow `json:"refused"`
	Evicted   Flow `json:"evicted"`
	Expired   Flow `json:"expired"` // dead letters for that reason are among Died as well

	Waiting   int64   `json:"waiting"`
	OldestAge float64 `json:"oldestAge"` // of those that could be handed out
	// Drain is when nothing would wait any more if the last minute went on like
	// this; nil if never.
	Drain *float64 `json:"drain"`

	Objective *Standing     `json:"objective,omitempty"`
	Expected  *RateStanding `json:"expectedRate,omitempty"`
}

// Flow is how many there were and how many there are per second.
type Flow struct {
	Total uint64 `json:"total"`
	Rates `json:"perSecond"`

	Estimate float64 `json:"-"` // per second, if it goes on like this
}

// Standing is how an objective stands.
type Standing struct {
	Wait    float64 `json:"wait"`
	Share   float64 `json:"share"` // promised
	State   State   `json:"state"`
	Short   Burn    `json:"short"`
	Long    Burn    `json:"long"`
	Overdue float64 `json:"overdue"` // estimate of waiting messages late already
}

// Burn is how an objective stands in one window.
type Burn struct {
	Window float64 `json:"window"`
	Share  float64 `json:"share"` // of the messages that started in time
	Rate   float64 `json:"burn"`  // late ones in proportion to those that may be late
}

// RateStanding is how the expected rate stands.
type RateStanding struct {
	Expected float64 `json:"expected"`
	Real     float64 `json:"real"`
	State    State   `json:"state"`
}

// OperationReport is how often clients asked for one kind of thing.
type OperationReport struct {
	Operation string `json:"operation"`
	Flow
}

// Report returns what is measured at now. Classes in which nothing ever happened
// and that promise nothing are left out.
func (m *Meter) Report(now time.Time) Report {
	r := Report{At: now}
	var asked, done uint64
	for o := range operations {
		f := flow(&m.kinds[o], now)
		asked += f.Total
		r.Operations = append(r.Operations, OperationReport{o.String(), f})
	}
	for _, c := range m.classes {
		done += c.completed.total
		if c.number != 0 || c.used() {
			r.Classes = append(r.Classes, c.report(now))
		}
	}
	if done > 0 {
		r.PerMessage = float64(asked) / float64(done)
	}
	return r
}

// used reports whether anything happened.
func (c *class) used() bool {
	return c.wait != nil || c.arrived.total+c.died.total+c.refused.total+c.evicted.total+c.expired.total > 0 || c.backlog.Waiting > 0
}

func flow(r *Rate, now time.Time) Flow { return Flow{r.Total(), r.At(now), r.Estimate(now)} }

func (c *class) report(now time.Time) ClassReport {
	r := ClassReport{
		Class: c.number, Name: c.Name,
		Arrived: flow(&c.arrived, now), Completed: flow(&c.completed, now), Died: flow(&c.died, now),
		Refused: flow(&c.refused, now), Evicted: flow(&c.evicted, now), Expired: flow(&c.expired, now),
		Waiting: c.backlog.Waiting,
	}
	if c.wait != nil {
		r.Wait, r.Service, r.EndToEnd = c.wait.summary(), c.service.summary(), c.total.summary()
	}
	if !c.backlog.Oldest.IsZero() {
		r.OldestAge = max(now.Sub(c.backlog.Oldest), 0).Seconds()
	}
	r.Drain = drain(r.Waiting, r.Completed.Estimate-r.Arrived.Estimate)
	if c.Wait > 0 {
		c.promise.advance(now.UnixNano(), c.slot)
		r.Objective = c.standing(now)
	}
	if c.Expected > 0 {
		r.Expected = &RateStanding{c.Expected, r.Completed.Estimate, c.pace.state}
	}
	return r
}

func (c *class) standing(now time.Time) *Standing {
	b := c.burn(now)
	in := func(window time.Duration, rate float64) Burn {
		return Burn{window.Seconds(), 1 - rate*(1-c.Share), rate}
	}
	return &Standing{
		Wait: c.Wait.Seconds(), Share: c.Share, State: c.state, Overdue: b.overdue,
		Short: in(c.slot*shortSlots, b.short), Long: in(c.slot*longSlots, b.long),
	}
}

// drain returns the seconds until waiting messages are gone at that many more out
// than in; nil is never.
func drain(waiting int64, surplus float64) *float64 {
	var seconds float64
	switch {
	case waiting <= 0:
	case surplus <= 0:
		return nil
	default:
		seconds = float64(waiting) / surplus
	}
	return &seconds
}

// States yields nothing but the states, cheaply: by class number.
func (m *Meter) States(yield func(class uint8, objective State) bool) {
	for _, c := range m.classes {
		if c.Wait > 0 && !yield(c.number, c.state) {
			return
		}
	}
}
