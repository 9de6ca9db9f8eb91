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
	s.drain()

	if !f.HasHandle {
		if f.Echo {
			s.flowDue = true
			s.touch()
		}
		return
	}
	l := s.link(f.Handle)
	if l == nil || l.state == detaching {
		return
	}
	if l.Role() == frame.Sender {
		l.onCredit(f)
	} else if f.HasDeliveryCount {
		// The sender gave credit up; that is the only way its count runs ahead
		// of what we got.
		if used := f.DeliveryCount - l.count; int32(used) > 0 {
			l.count = f.DeliveryCount
			l.credit -= min(used, l.credit)
			l.topUp()
		}
	}
	if f.Echo && l.state == attached {
		l.tellFlow()
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
	}
	l.draining = f.Drain
	if l.state == attached {
		l.session.m.app.Credit(l)
	}
}

// topUp grants new credit when half of the window has been used and settled.
func (l *Link) topUp() {
	if l.window == 0 || l.state != attached {
		return
	}
	held := l.credit + l.unsettled
	if held >= l.window || l.window-held < (l.window+1)/2 {
		return
	}
	l.credit = l.window - l.unsettled
	l.tellFlow()
}

// tellFlow has the link's state sent with the next flush.
func (l *Link) tellFlow() {
	if l.flowDue {
		return
	}
	l.flowDue = true
	l.session.flows = append(l.session.flows, l)
	l.session.touch()
}

// sendFlow sends the link's state now. Credit and count are always there: clients
// that send (go-amqp, rhea) cannot do without.
func (l *Link) sendFlow() {
	l.flowDue = false
	l.session.sendFlow(&frame.Flow{
		Handle: l.handle, HasHandle: true,
		DeliveryCount: l.count, HasDeliveryCount: true,
		LinkCredit: l.credit, HasLinkCredit: true,
		Drain: l.draining,
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
