// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
)

// A connection that is stopped lets its peer go in steps. By the specification a close
// would do, but clients look at their links and deliveries: the JavaScript SDK lets a send
// wait for its whole time-out unless a disposition ends it, which has to come before the
// detach of its link.
//
//	draining    the peer gets no more credit, so that one that sends much has to pause
//	answering   nothing more is read; the App answers what was
//	detached    every link is detached with amqp:link:detach-forced; what the peer sent
//	            before it knew is read, and refused with a disposition
//	close       when the peer has answered every detach, or takes too long
type stopState uint8

const (
	notStopping stopState = iota
	draining
	answering
	detached
)

// condServerBusy tells Service Bus clients to try again.
const condServerBusy = names.ServerBusy

const textStopping = "the server is closing the connection"

// errRefused is what becomes of what comes too late.
var errRefused = Errorf(condServerBusy, textStopping+"; this has not been done")

const (
	// stopPatience is how long a step may take if there is no deadline.
	stopPatience = 2 * time.Second
	// stopQuiet is how long a peer has to be silent to have nothing under way.
	stopQuiet = 100 * time.Millisecond
	// stopCredit is what a peer keeps of its credit, besides what it has under way as
	// far as we know. It is not zero because a peer that has sent more than that by
	// then would have negative credit, which rhea takes for credit.
	stopCredit = 64
	// detachPatience is how long a peer has to answer our detaches.
	detachPatience = time.Second
)

// stop lets the peer go, because stop has ended; ctx ends with the connection.
func (c *Conn) stop(ctx, stop context.Context) error {
	patience := stopPatience
	if at, ok := stop.Deadline(); ok { // three steps, and the time to read the last
		patience = time.Until(at) / 4
	}
	cause := context.Cause(stop)
	began := time.Now()
	steps := []struct {
		begin    func(*Machine)
		over     func(*Machine) bool
		patience time.Duration
	}{
		{(*Machine).stopCredit, func(m *Machine) bool { return m.quiet(began) }, patience},
		{(*Machine).stopReading, (*Machine).idle, patience},
		{(*Machine).detachAll, func(m *Machine) bool { return m.links == 0 }, min(patience, detachPatience)},
	}
	for _, step := range steps {
		c.mu.Lock()
		step.begin(c.machine)
		c.mu.Unlock()
		c.Resume()
		if err := c.await(ctx, step.over, step.patience); err != nil {
			return err
		}
	}
	return c.closeAndFlush(cause)
}

// await works until the machine is done, over says so, or the patience is at an end.
func (c *Conn) await(ctx context.Context, over func(*Machine) bool, patience time.Duration) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		if _, err := c.pump(); err != nil {
			return err
		}
		c.mu.Lock()
		done := over(c.machine)
		c.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-c.wake:
		case <-time.After(stopQuiet):
		case <-late.C:
			return nil
		case <-ctx.Done():
			return c.closeAndFlush(context.Cause(ctx))
		}
	}
}

// stopCredit begins the first step.
func (m *Machine) stopCredit() {
	m.stop = draining
	for _, s := range m.sessions.all() {
		for _, l := range s.links.all() {
			if l.Attached() && l.Role() == frame.Receiver {
				l.scheduleFlow()
			}
		}
	}
}

// grantable is the credit that the peer is told on a link on which we receive. What it
// was told before holds as well: it may have used it by now.
func (l *Link) grantable() uint32 {
	if l.Role() == frame.Receiver && l.session.m.stop != notStopping {
		return min(l.credit, stopCredit+2*l.unsettled)
	}
	return l.credit
}

// quiet reports whether the peer has nothing under way, as far as we can tell, since it
// was told at the time began to pause.
func (m *Machine) quiet(began time.Time) bool {
	if m.links == 0 {
		return true
	}
	if m.heard.After(began) {
		began = m.heard
	}
	return m.idle() && time.Since(began) >= stopQuiet
}

// stopReading begins the second step.
func (m *Machine) stopReading() { m.stop = answering }

// idle reports whether the App owes the peer no answer: to no delivery of the peer, and
// to no disposition about one of ours.
func (m *Machine) idle() bool {
	for _, s := range m.sessions.all() {
		for _, l := range s.links.all() {
			unfinished := uint32(0)
			if l.receiving {
				unfinished = 1 // its end has not come, so there is nothing to answer
			}
			if l.Attached() && l.unsettled > unfinished {
				return false
			}
		}
		if s.sent.owes() {
			return false
		}
	}
	return true
}

// detachAll begins the third step.
func (m *Machine) detachAll() {
	m.stop = detached
	for _, s := range m.sessions.all() {
		for _, l := range s.links.all() {
			if !s.ending {
				l.Detach(Errorf(CondDetachForced, textStopping))
			}
		}
	}
	m.reportEnded()
}

// refuseLate answers a transfer on a link that we have detached, at its end, and unless
// it is settled.
func (l *Link) refuseLate(t *frame.Transfer) {
	if t.HasDeliveryID {
		l.head.ID = t.DeliveryID
	}
	if l.session.m.stop == detached && l.Role() == frame.Receiver && !t.More && !t.Aborted && !t.Settled {
		l.session.sendDisposition(&settlement{l.head.ID, l.head.ID, true, frame.Rejected(errRefused)}, frame.Receiver)
	}
}

// refuseLateOutcome answers a disposition about deliveries of links that we have detached.
// None of them is known any more.
func (s *Session) refuseLateOutcome(d *frame.Disposition) {
	if s.m.stop == detached && !d.Settled {
		s.sendDisposition(&settlement{d.First, d.Last, true, frame.Rejected(errRefused)}, frame.Sender)
	}
}
