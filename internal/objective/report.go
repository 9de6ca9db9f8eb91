// SPDX-License-Identifier: Apache-2.0

package objective

import "time"

// Report contains all measurements of a queue, for people and monitoring.
// Durations are in seconds, rates per second.
type Report struct {
	At         time.Time         `json:"at"`
	Classes    []ClassReport     `json:"classes"`
	Operations []OperationReport `json:"operations"`
	// PerMessage is the number of client operations per completed message, since
	// the first measurement; zero if none was completed.
	PerMessage float64 `json:"operationsPerMessage"`
}

// ClassReport contains the measurements of a class.
type ClassReport struct {
	Class uint8  `json:"number"`
	Name  string `json:"name"` // empty for the messages in no class

	Wait     Summary `json:"wait"`     // until the first delivery
	Service  Summary `json:"service"`  // from the last delivery until settled
	EndToEnd Summary `json:"endToEnd"` // from enqueued until settled

	Arrived      Flow `json:"arrived"`
	Completed    Flow `json:"completed"`
	DeadLettered Flow `json:"deadLettered"`
	Refused      Flow `json:"refused"`
	Evicted      Flow `json:"evicted"`
	Expired      Flow `json:"expired"` // expired messages that became dead letters are in DeadLettered as well

	Waiting   int64   `json:"waiting"`
	OldestAge float64 `json:"oldestAge"` // of those that could be delivered
	// DrainSeconds is the time until the backlog is empty at the rates of the
	// last minute; nil if never.
	DrainSeconds *float64 `json:"drainSeconds"`

	Objective *ObjectiveStatus `json:"objective,omitempty"`
	Expected  *RateStatus      `json:"expectedRate,omitempty"`
}

// Flow is a number of events and their rate per second.
type Flow struct {
	Total uint64 `json:"total"`
	Rates `json:"perSecond"`

	Estimate float64 `json:"-"` // per second, see Rate.Estimate
}

// ObjectiveStatus is the state of an objective and how it was computed.
type ObjectiveStatus struct {
	Wait    float64 `json:"wait"`
	Target  float64 `json:"target"` // share of the messages that must be in time
	State   State   `json:"state"`
	Short   Burn    `json:"short"`
	Long    Burn    `json:"long"`
	Overdue float64 `json:"overdue"` // estimate of waiting messages late already
}

// Burn is the burn rate of an objective in one measuring window.
type Burn struct {
	Window float64 `json:"window"`
	Share  float64 `json:"share"` // of the messages that started in time
	Rate   float64 `json:"burn"`  // late messages divided by those allowed to be late
}

// RateStatus compares the expected rate with the actual rate.
type RateStatus struct {
	Expected float64 `json:"expected"`
	Actual   float64 `json:"actual"`
	State    State   `json:"state"`
}

// OperationReport is how often clients requested one operation.
type OperationReport struct {
	Operation string `json:"operation"`
	Flow
}

// Report returns the measurements at now. The messages without a class are left
// out if there were none.
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
	return c.wait != nil || c.arrived.total+c.deadLettered.total+c.refused.total+c.evicted.total+c.expired.total > 0 || c.backlog.Waiting > 0
}

func flow(r *Rate, now time.Time) Flow { return Flow{r.Total(), r.At(now), r.Estimate(now)} }

func (c *class) report(now time.Time) ClassReport {
	r := ClassReport{
		Class: c.number, Name: c.Name,
		Arrived: flow(&c.arrived, now), Completed: flow(&c.completed, now), DeadLettered: flow(&c.deadLettered, now),
		Refused: flow(&c.refused, now), Evicted: flow(&c.evicted, now), Expired: flow(&c.expired, now),
		Waiting: c.backlog.Waiting,
	}
	if c.wait != nil {
		r.Wait, r.Service, r.EndToEnd = c.wait.summary(), c.service.summary(), c.total.summary()
	}
	if !c.backlog.Oldest.IsZero() {
		r.OldestAge = max(now.Sub(c.backlog.Oldest), 0).Seconds()
	}
	r.DrainSeconds = drain(r.Waiting, r.Completed.Estimate-r.Arrived.Estimate)
	if c.Wait > 0 {
		c.outcomes.advance(now.UnixNano(), c.bucketLength)
		r.Objective = c.status(now)
	}
	if c.Expected > 0 {
		r.Expected = &RateStatus{c.Expected, r.Completed.Estimate, c.rateWatch.state}
	}
	return r
}

func (c *class) status(now time.Time) *ObjectiveStatus {
	b := c.burn(now)
	in := func(window time.Duration, rate float64) Burn {
		return Burn{window.Seconds(), 1 - rate*(1-c.Target), rate}
	}
	return &ObjectiveStatus{
		Wait: c.Wait.Seconds(), Target: c.Target, State: c.state, Overdue: b.overdue,
		Short: in(c.bucketLength*shortBuckets, b.short), Long: in(c.bucketLength*longBuckets, b.long),
	}
}

// drain returns the seconds until the waiting messages are completed if
// completions exceed arrivals by surplus per second; nil is never.
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

// States yields only the states of the objectives, by class number. It costs
// less than Report.
func (m *Meter) States(yield func(class uint8, objective State) bool) {
	for _, c := range m.classes {
		if c.Wait > 0 && !yield(c.number, c.state) {
			return
		}
	}
}
