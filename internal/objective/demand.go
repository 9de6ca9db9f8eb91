// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// defaultHeadroom is how many workers to add to the busy ones, as a share of
// the busy ones. With fewer, queues form by chance alone.
const defaultHeadroom = 0.25

// defaultDrain is the time in which to work off the backlog of a class without
// an objective.
const defaultDrain = 5 * time.Minute

// minLeft is the part of an objective's wait in which messages that are late
// already are to be worked off. With no time at all, the number of workers
// would be infinite.
const minLeft = 0.1

// Load is the load of one class.
type Load struct {
	Name    string
	Arrival float64       // messages per second
	Service time.Duration // work on one; zero is not known yet
	Waiting int64
	Oldest  time.Duration // age of the oldest waiting
	Wait    time.Duration // objective; zero is none
}

// DemandInput is the input of Demand.
type DemandInput struct {
	Classes  []Load
	Headroom float64 // zero is defaultHeadroom; negative is none
	Running  int     // messages in work, if known: so many workers at least
	Floor    int     // fewest workers
	Ceiling  int     // most workers; zero is no limit
}

// DemandResult is how many workers are needed, and why.
type DemandResult struct {
	Workers int     `json:"workers"`
	Steady  float64 `json:"steady"`  // workers busy with arrivals
	Spare   float64 `json:"spare"`   // more of them for headroom
	Backlog float64 `json:"backlog"` // more of them to work off what waits in time
	Why     string  `json:"why"`
}

// Demand returns how many workers the objectives need now:
//
//	steady  = sum over classes of arrival rate × service time      (Little's law)
//	spare   = headroom × steady
//	backlog = max over deadlines D of (work that is due by D) / D
//	workers = steady + spare + backlog, rounded up, within floor and ceiling
//
// The work that is due by D is the sum of waiting × service time over the
// classes that have at most D left: the objective's wait minus the age of the
// oldest message, but at least a tenth of the wait.
func Demand(in DemandInput) DemandResult {
	var r DemandResult
	waiting := int64(0)
	for _, c := range in.Classes {
		r.Steady += max(c.Arrival, 0) * c.Service.Seconds()
		waiting += max(c.Waiting, 0)
	}
	headroom := max(cmp.Or(in.Headroom, defaultHeadroom), 0)
	r.Spare = headroom * r.Steady
	due, name := dueFirst(in.Classes)
	r.Backlog = due

	sum := r.Steady + r.Spare + r.Backlog
	// A very short service time still rounds up to one worker; a rounding error of
	// floating point does not.
	workers := int(math.Ceil(min(sum, math.MaxInt32) - 1e-9))
	if waiting > 0 {
		workers = max(workers, 1)
	}
	workers = max(workers, in.Running, in.Floor, 0)
	if in.Ceiling > 0 {
		workers = min(workers, in.Ceiling)
	}
	r.Workers = workers
	r.Why = r.why(in, name)
	return r
}

// left returns how much time is left to start the waiting messages of a class.
func (c Load) left() time.Duration {
	wait := cmp.Or(c.Wait, defaultDrain)
	return max(wait-c.Oldest, time.Duration(minLeft*float64(wait)), time.Millisecond)
}

// dueFirst returns how many workers the backlog needs and the class whose
// deadline needs most.
func dueFirst(classes []Load) (workers float64, name string) {
	byDeadline := slices.SortedFunc(slices.Values(classes), func(a, b Load) int { return cmp.Compare(a.left(), b.left()) })
	var work float64
	for _, c := range byDeadline {
		work += float64(max(c.Waiting, 0)) * c.Service.Seconds()
		if need := work / c.left().Seconds(); need > workers {
			workers, name = need, c.Name
		}
	}
	return workers, name
}

func (r *DemandResult) why(in DemandInput, name string) string {
	text := fmt.Sprintf("%.3g busy with arrivals, %.3g spare", r.Steady, r.Spare)
	if r.Backlog > 0 {
		text += fmt.Sprintf(", %.3g for the backlog", r.Backlog)
		if name != "" {
			text += fmt.Sprintf(" (class %s is the most pressing)", name)
		}
	}
	switch need := r.Steady + r.Spare + r.Backlog; {
	case in.Ceiling > 0 && r.Workers == in.Ceiling && need > float64(in.Ceiling):
		text += "; limited by the ceiling"
	case r.Workers == in.Floor && need <= float64(in.Floor-1):
		text += "; raised to the floor"
	case r.Workers == in.Running && need <= float64(in.Running-1):
		text += "; this many are busy now"
	case need < 1 && r.Workers == 1:
		text += "; at least one while messages are waiting"
	}
	return text
}

// Load returns the load of a class from its report: the arrivals of the last
// minute and the mean of the recent service times.
func (c ClassReport) Load() Load {
	l := Load{
		Name: c.Name, Arrival: c.Arrived.Estimate, Service: seconds(c.Service.Mean),
		Waiting: c.Waiting, Oldest: seconds(c.OldestAge),
	}
	if c.Objective != nil {
		l.Wait = seconds(c.Objective.Wait)
	}
	return l
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
