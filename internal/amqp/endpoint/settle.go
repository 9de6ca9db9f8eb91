// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"slices"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// settlement is a disposition we owe the peer.
type settlement struct {
	first, last uint32
	settled     bool
	state       frame.State
}

// settlements collects dispositions of one role in a session, so that many
// deliveries with one outcome become one frame.
type settlements struct {
	list []settlement
}

// add takes over x, joined to the one before if it continues it.
func (c *settlements) add(s *Session, x settlement, role frame.Role) {
	if !plain(&x.state) {
		s.sendDisposition(&x, role) // it may borrow what will not be there later
		return
	}
	if n := len(c.list); n > 0 {
		if last := &c.list[n-1]; last.continuedBy(&x) {
			last.last = x.last
			return
		}
	}
	c.list = append(c.list, x)
	s.m.mem.owed++
	s.touch()
}

// plain reports whether s owns all that it refers to.
func plain(s *frame.State) bool {
	return s.Annotations == nil && s.Section == nil && s.Transaction == nil &&
		(s.Error == nil || s.Error.Info == nil)
}

func (a *settlement) continuedBy(b *settlement) bool {
	return b.first == a.last+1 && a.settled == b.settled && a.state.Kind == b.state.Kind &&
		a.state.Error == b.state.Error &&
		a.state.DeliveryFailed == b.state.DeliveryFailed &&
		a.state.UndeliverableHere == b.state.UndeliverableHere
}

// flush sends what was collected, in as few frames as possible. The order in
// which deliveries were settled does not matter, so they are sorted first.
func (c *settlements) flush(s *Session, role frame.Role) {
	if len(c.list) == 0 {
		return
	}
	if len(c.list) > 1 {
		slices.SortFunc(c.list, func(a, b settlement) int { return int(int32(a.first - b.first)) })
	}
	x := &c.list[0]
	for i := 1; i < len(c.list); i++ {
		next := &c.list[i]
		if x.continuedBy(next) {
			x.last = next.last
			continue
		}
		s.sendDisposition(x, role)
		x = next
	}
	s.sendDisposition(x, role)
	s.m.mem.owed -= len(c.list)
	clear(c.list) // errors must not live on in the spare space
	c.list = c.list[:0]
}

func (s *Session) sendDisposition(x *settlement, role frame.Role) {
	d := &s.m.scratch.reply
	*d = frame.Disposition{Role: role, First: x.first, Last: x.last, Settled: x.settled, State: x.state}
	s.m.send(s.channel, d)
}

// onDisposition tells the App what the peer says about deliveries we sent
// [AMQP 2.6.12]. What it says about its own is of no interest: we have settled
// them or will.
func (s *Session) onDisposition(d *frame.Disposition) {
	if d.Role != frame.Receiver || int32(d.Last-d.First) < 0 {
		return
	}
	if !d.Settled && (d.State.Kind == frame.StateNone || d.State.Kind == frame.StateReceived) {
		return // on its way; we want the end of it
	}
	found, removed, before := s.m.scratch.found[:0], 0, s.sent.steps
	for id, e := range s.sent.between(d.First, d.Last) {
		if !e.reported {
			found = append(found, report{e.link, Sent{ID: id, Ref: e.ref, Value: e.value}})
		}
		e.reported = true
		if d.Settled {
			e.link.out--
			s.sent.remove(id)
			removed++
		}
	}
	s.m.scratch.found = found
	s.tire(s.sent.steps-before, uint64(max(len(found), removed)))
	if len(found) == 0 {
		s.refuseLateOutcome(d)
	}
	s.lighten()
	s.report(found, d)
	clear(found)
	if cap(found) > maxScratch { // a disposition about very many at once
		s.m.scratch.found, s.m.scratch.outcome.Deliveries = nil, nil
	}
}

const (
	// stepsEach is how many entries may be looked at for each that a disposition is about.
	stepsEach = 64
	// idleSteps is how many may be looked at besides that: some ten milliseconds.
	idleSteps = 1 << 22
)

// tire ends the connection of a peer that names the same deliveries again and again, or
// ranges of which nearly all were settled: a few bytes each, and any number of steps.
// Clients name a delivery once or twice.
func (s *Session) tire(steps, useful uint64) {
	s.idle += steps
	s.idle -= min(s.idle, stepsEach*useful)
	if s.idle > idleSteps && s.m.closeErr == nil {
		s.m.closeErr = Errorf(CondResourceLimitExceeded, "dispositions name ranges of deliveries that are settled, or were named before, again and again")
	}
}

// maxScratch is how many deliveries the space for a disposition is kept for.
const maxScratch = 1 << 13

// report is a delivery the App is to be told an outcome of.
type report struct {
	link *Link
	sent Sent
}

// report calls the App once for each run of deliveries of one link. The App may
// send and settle meanwhile, so the map is out of the game by now.
func (s *Session) report(found []report, d *frame.Disposition) {
	o := &s.m.scratch.outcome
	o.State, o.Settled = d.State, d.Settled
	for len(found) > 0 {
		l := found[0].link
		o.Deliveries = o.Deliveries[:0]
		for len(found) > 0 && found[0].link == l {
			o.Deliveries = append(o.Deliveries, found[0].sent)
			found = found[1:]
		}
		if l.Attached() {
			s.m.app.Disposition(l, o)
		}
		clear(o.Deliveries)
	}
	o.State = frame.State{}
}

// SettleOut settles a delivery we sent and tells the peer its final state.
// Consecutive deliveries with the same state leave as one disposition.
func (l *Link) SettleOut(id uint32, state frame.State) {
	if !l.Attached() {
		return
	}
	s := l.session
	if e := s.sent.get(id); e == nil || e.link != l {
		return // settled by the peer in the meantime
	}
	s.sent.remove(id)
	s.lighten()
	l.out--
	s.settled.add(s, settlement{first: id, last: id, settled: true, state: state}, frame.Sender)
}
