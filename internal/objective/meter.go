// SPDX-License-Identifier: Apache-2.0

package objective

import "time"

// Class is what a Meter must know of a class of messages.
type Class struct {
	Name     string
	Wait     time.Duration // promised until the first delivery; zero is no promise
	Share    float64       // of the messages that the promise is for, below 1
	Expected float64       // messages that should be worked off per second; zero is not known
}

// Meter measures one queue, class by class. Classes go by their number in the
// queue's policy, from 1; zero is the messages in none, and so are numbers that
// the meter does not know. It belongs to one goroutine at a time.
type Meter struct {
	classes []*class // by number
	kinds   [operations]Rate
	rotated int64 // when recent measurements were last begun anew, in nanoseconds
}

// class is all that is measured of one class.
type class struct {
	Class
	number uint8
	slot   time.Duration // of the window

	arrived, completed, died, refused, evicted, expired Rate

	wait, service, total *measure // allocated by the first event

	promise window
	state   State
	backlog Backlog
	pace    pace
}

// Backlog is what waits of a class now.
type Backlog struct {
	Waiting int64     // messages that could be handed out
	Oldest  time.Time // when the oldest of them came; zero if none waits
}

// NewMeter returns a meter for the classes of a policy, in its order.
func NewMeter(classes []Class) *Meter {
	m := new(Meter)
	m.Configure(classes)
	return m
}

// Configure changes the classes. What was measured of a class stays with its
// name; a promise that has changed is watched anew.
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
		if next.Wait != c.Wait || next.Share != c.Share {
			next.promise, next.state = window{}, NoObjective
		}
		next.Class, next.number, next.slot = c, uint8(i), slotFor(c.Wait)
		if next.state == NoObjective && c.Wait > 0 {
			next.state = Met
		}
		next.pace = pace{}
		if c.Expected > 0 {
			next.pace.state = Met
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

// Arrived counts n messages that came in.
func (m *Meter) Arrived(now time.Time, class uint8, n int) {
	m.of(class).arrived.add(now.UnixNano(), uint64(n))
}

// Delivered counts the first delivery of a message that was enqueued then.
func (m *Meter) Delivered(now time.Time, class uint8, enqueued time.Time) {
	c, at := m.of(class), now.UnixNano()
	c.ready()
	waited := time.Duration(at - enqueued.UnixNano())
	c.wait.current.Record(waited)
	c.promised(at, waited)
}

// promised counts a wait for or against the promise.
func (c *class) promised(now int64, waited time.Duration) {
	if c.Wait == 0 {
		return
	}
	c.promise.advance(now, c.slot)
	if waited <= c.Wait {
		c.promise.good()
	} else {
		c.promise.bad()
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

// Died counts a message that became a dead letter.
func (m *Meter) Died(now time.Time, class uint8) { m.of(class).died.add(now.UnixNano(), 1) }

// Expired counts a message whose life ended before it was completed, whether it
// became a dead letter or not.
func (m *Meter) Expired(now time.Time, class uint8) { m.of(class).expired.add(now.UnixNano(), 1) }

// Undelivered counts a message that left without ever having been delivered, as a
// dead letter or because it expired. It breaks the promise, however long it waited:
// what is promised is a delivery.
func (m *Meter) Undelivered(now time.Time, class uint8) {
	if c := m.of(class); c.Wait > 0 {
		c.promise.advance(now.UnixNano(), c.slot)
		c.promise.bad()
	}
}

// Refused counts n messages that were turned away.
func (m *Meter) Refused(now time.Time, class uint8, n int) {
	m.of(class).refused.add(now.UnixNano(), uint64(n))
}

// Evicted counts n waiting messages that made room for others. Their promise is
// neither kept nor broken.
func (m *Meter) Evicted(now time.Time, class uint8, n int) {
	m.of(class).evicted.add(now.UnixNano(), uint64(n))
}

// Observe tells what waits of a class; Tick and Report go by it until told anew.
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
