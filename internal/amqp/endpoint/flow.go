// SPDX-License-Identifier: Apache-2.0

package endpoint

import "github.com/triagemq/triagemq/internal/amqp/frame"

// onFlow takes over what the peer says about the session's windows and a link's
// credit [AMQP 2.5.6, 2.6.7].
func (s *Session) onFlow(f *frame.Flow) {
	base := s.firstOut
	if f.HasNextIncomingID {
		base = f.NextIncomingID
	}
	s.outWindow = remaining(base, f.IncomingWindow, s.nextOut)

	if !f.HasHandle {
		s.drain()
		if f.Echo {
			s.flowDue = true
			s.touch()
		}
		return
	}
	l := s.link(f.Handle)
	if l == nil || l.state == detaching {
		s.drain()
		return
	}
	if l.Role() == frame.Sender {
		l.onCredit(f) // before more is sent: it may have been taken back
		s.drain()
		if l.state == attached {
			s.m.app.Credit(l)
		}
	} else if s.drain(); f.HasDeliveryCount {
		// The sender gave credit up; that is the only way its count runs ahead
		// of what we got.
		if used := f.DeliveryCount - l.count; int32(used) > 0 {
			l.count = f.DeliveryCount
			l.credit -= min(used, l.credit)
			l.topUp()
		}
	}
	if f.Echo && l.state == attached {
		l.scheduleFlow()
	}
}

// remaining is how much of a limit is left at position at, when the limit was
// counted from base: never negative, whatever a peer makes of the numbers.
func remaining(base, limit, at uint32) uint32 {
	used := at - base
	if int32(used) < 0 {
		used = 0 // the peer is ahead of us, which cannot be
	}
	if used > limit {
		return 0
	}
	return limit - used
}

// onCredit takes over the credit for a link on which we send. Credit is absolute:
// the peer counts from the deliveries it has seen.
func (l *Link) onCredit(f *frame.Flow) {
	if f.HasLinkCredit {
		base := uint32(0) // our initial delivery-count, if it has seen nothing
		if f.HasDeliveryCount {
			base = f.DeliveryCount
		}
		l.credit = remaining(base, f.LinkCredit, l.count)
		if l.queued > 0 {
			l.park()
		}
	}
	l.draining = f.Drain || l.drainAnswer != nil && l.credit > 0
	l.drained = false // the App looks again, and answers this drain and the one before
}

// park sets deliveries aside that wait for the session's window and that the peer has
// taken the credit for back, and puts them into the queue again when there is credit.
//
// Invariant: leaving() <= credit, and as long as anything is parked they are equal.
func (l *Link) park() {
	s, n := l.session, l.leaving()
	if n < l.credit {
		again := min(int(l.credit-n), len(l.parked))
		s.queue = append(s.queue, l.parked[:again]...)
		l.parked = l.parked[again:]
		return
	}
	space := l.credit
	kept, parked := s.queue[:0], []*waiting(nil)
	for _, w := range s.queue {
		switch {
		case w.link != l || w.started:
			kept = append(kept, w)
		case space > 0:
			kept = append(kept, w)
			space--
		default:
			parked = append(parked, w)
		}
	}
	clear(s.queue[len(kept):])
	s.queue = kept
	l.parked = append(parked, l.parked...) // which came later
	if len(s.queue) == 0 {
		s.m.recheck = true
	}
}

// forgetParked drops what is parked.
func (l *Link) forgetParked() {
	m := l.session.m
	for _, w := range l.parked {
		m.out.queue -= len(w.Payload)
		m.mem.waiting--
		l.queued--
		if m.tracker != nil {
			m.tracker.Unsent(l, w.Ref)
		}
	}
	l.parked = nil
}

// topUp grants new credit when half of the window has been used and settled.
func (l *Link) topUp() {
	if l.window == 0 || l.state != attached || l.session.m.stop != notStopping {
		return
	}
	held := l.credit + l.unsettled
	if held >= l.window || l.window-held < (l.window+1)/2 {
		return
	}
	l.credit = l.window - l.unsettled
	l.scheduleFlow()
}

// scheduleFlow has the link's state sent with the next flush.
func (l *Link) scheduleFlow() {
	if l.flowDue {
		return
	}
	l.flowDue = true
	l.session.flows = append(l.session.flows, l)
	l.session.touch()
}

// sendFlow sends the link's state now. Credit and count are always there: clients
// that send (go-amqp, rhea) cannot do without.
func (l *Link) sendFlow() { l.sendFlowWith(nil) }

// sendFlowWith sends the link's state with properties, an encoded map or nil.
func (l *Link) sendFlowWith(properties []byte) {
	l.flowDue = false
	l.session.sendFlow(&frame.Flow{
		Handle: l.handle, HasHandle: true,
		DeliveryCount: l.count, HasDeliveryCount: true,
		LinkCredit: l.grantable(), HasLinkCredit: true,
		Drain: l.draining, Properties: properties,
	})
}

// sendFlow completes f with the session's state, sends it, and with that opens
// our window again: transfers are handled as they come, so that only credit
// limits a peer in the end.
func (s *Session) sendFlow(f *frame.Flow) {
	s.flowDue = false
	s.inWindow = s.m.cfg.IncomingWindow
	f.NextIncomingID, f.HasNextIncomingID = s.nextIn, true
	f.IncomingWindow = s.inWindow
	f.NextOutgoingID = s.nextOut
	f.OutgoingWindow = outgoingWindow
	s.m.send(s.channel, f)
}
