// SPDX-License-Identifier: Apache-2.0

package objective

import "time"

// Class is the configuration of a class of messages.
type Class struct {
	Name     string
	Wait     time.Duration // objective for the first delivery; zero is no objective
	Target   float64       // share of the messages that must be in time, below 1
	Expected float64       // messages that should be worked off per second; zero is not known
}

// Meter measures one queue, class by class. Classes are numbered as in the
// queue's policy, from 1. Zero, and every unknown number, means messages
// without a class. A Meter belongs to one goroutine at a time.
type Meter struct {
	classes []*class // by number
	kinds   [operations]Rate
	rotated int64 // when recent measurements were last reset, in nanoseconds
}

// class contains all measurements of one class.
type class struct {
	Class
	number       uint8
	bucketLength time.Duration // of the measuring window

	arrived, completed, deadLettered, refused, evicted, expired Rate

	wait, service, total *measure // allocated by the first event

	outcomes  measuringWindow
	state     State
	backlog   Backlog
	rateWatch rateWatch
}

// Backlog is the number and age of a class's ready messages.
type Backlog struct {
	Waiting int64     // messages that could be delivered
	Oldest  time.Time // when the oldest of them arrived; zero if there is none
}

// NewMeter returns a meter for the classes of a policy, in its order.
func NewMeter(classes []Class) *Meter {
	m := new(Meter)
	m.Configure(classes)
	return m
}

// Configure changes the classes. Measurements stay with the name of a class. If
// its objective has changed, its outcomes are reset.
func (m *Meter) Configure(classes []Class) {
	old := m.classes
	m.classes = make([]*class, 0, len(classes)+1)
	for i, c := range append([]Class{{}}, classes...) {
		next := &class{Class: c}
		for _, o := range old {
			if o.Name == c.Name {
				next = o
			}
		}
		if next.Wait != c.Wait || next.Target != c.Target {
			next.outcomes, next.state = measuringWindow{}, NoObjective
		}
		next.Class, next.number, next.bucketLength = c, uint8(i), bucketLengthFor(c.Wait)
		if next.state == NoObjective && c.Wait > 0 {
			next.state = Met
		}
		next.rateWatch = rateWatch{}
		if c.Expected > 0 {
			next.rateWatch.state = Met
		}
		m.classes = append(m.classes, next)
	}
}

// of returns a class by its number.
func (m *Meter) of(number uint8) *class {
	if int(number) < len(m.classes) {
		return m.classes[number]
	}
	return m.classes[0]
}

// Arrived counts n messages that arrived.
func (m *Meter) Arrived(now time.Time, class uint8, n int) {
	m.of(class).arrived.add(now.UnixNano(), uint64(n))
}

// Delivered counts the first delivery of a message that was enqueued then.
func (m *Meter) Delivered(now time.Time, class uint8, enqueued time.Time) {
	c, at := m.of(class), now.UnixNano()
	c.ready()
	waited := time.Duration(at - enqueued.UnixNano())
	c.wait.current.Record(waited)
	c.recordWait(at, waited)
}

// recordWait counts a wait as in time or late.
func (c *class) recordWait(now int64, waited time.Duration) {
	if c.Wait == 0 {
		return
	}
	c.outcomes.advance(now, c.bucketLength)
	if waited <= c.Wait {
		c.outcomes.addInTime()
	} else {
		c.outcomes.addLate()
	}
}

// ready allocates the measures. Most classes of most queues never need them.
func (c *class) ready() {
	if c.wait == nil {
		c.wait, c.service, c.total = new(measure), new(measure), new(measure)
	}
}

// Settled counts a message that was completed: enqueued and last delivered then.
func (m *Meter) Settled(now time.Time, class uint8, enqueued, delivered time.Time) {
	c, at := m.of(class), now.UnixNano()
	c.ready()
	c.service.current.Record(time.Duration(at - delivered.UnixNano()))
	c.total.current.Record(time.Duration(at - enqueued.UnixNano()))
	c.completed.add(at, 1)
}

// DeadLettered counts a message that became a dead letter.
func (m *Meter) DeadLettered(now time.Time, class uint8) {
	m.of(class).deadLettered.add(now.UnixNano(), 1)
}

// Expired counts a message that expired before it was completed, whether it
// became a dead letter or not.
func (m *Meter) Expired(now time.Time, class uint8) { m.of(class).expired.add(now.UnixNano(), 1) }

// Undelivered counts a message that was removed without ever having been
// delivered, as a dead letter or because it expired. It counts as late, however
// long it waited: the objective is a delivery.
func (m *Meter) Undelivered(now time.Time, class uint8) {
	if c := m.of(class); c.Wait > 0 {
		c.outcomes.advance(now.UnixNano(), c.bucketLength)
		c.outcomes.addLate()
	}
}

// Refused counts n messages that were rejected.
func (m *Meter) Refused(now time.Time, class uint8, n int) {
	m.of(class).refused.add(now.UnixNano(), uint64(n))
}

// Evicted counts n ready messages that were evicted for others. They count
// neither as in time nor as late.
func (m *Meter) Evicted(now time.Time, class uint8, n int) {
	m.of(class).evicted.add(now.UnixNano(), uint64(n))
}

// Observe sets the backlog of a class. Tick and Report use it until the next
// call.
func (m *Meter) Observe(class uint8, b Backlog) { m.of(class).backlog = b }

// Operation is a kind of request that clients make.
type Operation uint8

// The operations. They are in snapshots and never change.
const (
	Receive Operation = iota
	Send
	Settle
	Renew
	Peek
	EmptyWait // a receive that ended with nothing
	operations
)

var operationNames = [operations]string{"receive", "send", "settle", "renew", "peek", "emptyWait"}

// String returns the name of the operation.
func (o Operation) String() string { return operationNames[o] }

// Count counts n operations.
func (m *Meter) Count(now time.Time, o Operation, n int) { m.kinds[o].add(now.UnixNano(), uint64(n)) }
