// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"
	"iter"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/limits"
)

// Session is one session of a peer: links in one session share an order.
type Session struct {
	// Value is the App's own; the endpoint never looks at it.
	Value any

	m       *Machine
	channel uint16
	ending  bool // we sent end; everything up to the peer's is ignored

	// The windows count transfers, not deliveries [AMQP 2.5.6].
	nextIn    uint32 // id the peer's next transfer has
	inWindow  uint32 // transfers the peer may send before the next flow
	firstOut  uint32 // id of our first transfer
	nextOut   uint32 // id of our next transfer
	outWindow uint32 // transfers we may send
	handleMax uint32 // highest handle the peer takes

	links table[Link]       // the peer's handles, which are ours as well
	names map[linkKey]*Link // attached or asked for
	sent  unsettledMap      // deliveries we sent that are not settled
	queue []*waiting        // deliveries that wait for outWindow, oldest first

	received settlements // our dispositions as receiver, not sent yet
	settled  settlements // our dispositions as sender, not sent yet
	flows    []*Link     // whose state the peer is to be told
	flowDue  bool        // the peer is to be told the session's state
	dirty    bool        // in Machine.dirty
	weight   int         // what sent takes, in bytes
	idle     uint64      // steps that dispositions took for nothing; see tire
}

// lighten is weigh after something was removed: only a large map gives space back.
func (s *Session) lighten() {
	if s.weight >= maxRing*unsettledCost {
		s.weigh()
	}
}

// weigh notes what the map takes.
func (s *Session) weigh() {
	if n := s.sent.size(); n != s.weight {
		s.m.mem.unsettled += n - s.weight
		s.weight = n
	}
}

// linkKey makes names unique: the same name may serve a link each way.
type linkKey struct {
	name string
	role frame.Role
}

// Links yields the attached links in the order of their handles.
func (s *Session) Links() iter.Seq[*Link] {
	return func(yield func(*Link) bool) {
		for _, l := range s.links.all() {
			if l.Attached() && !yield(l) {
				return
			}
		}
	}
}

// onBegin maps a session onto a channel [AMQP 2.5.1]. Our half lives on the same
// channel number.
func (m *Machine) onBegin(channel uint16, fields *codec.Reader) {
	var b frame.Begin
	b.Decode(fields)
	switch {
	case fields.Err() != nil:
		m.fail(decodeError("begin", fields.Err()))
		return
	case b.HasRemoteChannel:
		m.fail(Errorf(CondNotAllowed, "begin answers channel %d, on which we began nothing", b.RemoteChannel))
		return
	case m.session(channel) != nil:
		m.fail(Errorf(CondNotAllowed, "begin on channel %d, which has a session", channel))
		return
	}
	switch {
	case m.mem.unauthenticated && m.begun >= limits.UnauthenticatedSessions:
		m.fail(Errorf(CondResourceLimitExceeded, "more than %d sessions before login", limits.UnauthenticatedSessions))
		return
	case !m.mem.counter.Take(sessionCost):
		m.fail(Errorf(CondResourceLimitExceeded, "the connection holds too much memory for another session"))
		return
	}
	s := &Session{
		m: m, channel: channel,
		nextIn: b.NextOutgoingID, inWindow: m.cfg.IncomingWindow,
		outWindow: b.IncomingWindow, handleMax: b.HandleMax,
	}
	m.sessions.set(uint32(channel), s)
	m.begun++
	m.send(channel, &frame.Begin{
		RemoteChannel: channel, HasRemoteChannel: true,
		NextOutgoingID: s.nextOut,
		IncomingWindow: s.inWindow,
		OutgoingWindow: outgoingWindow,
		HandleMax:      m.cfg.HandleMax,
	})
}

// outgoingWindow is what we announce: we buffer nothing that a peer would have to
// know of.
const outgoingWindow = 1<<31 - 1

func (s *Session) onPerformative(code frame.Code, fields *codec.Reader, payload []byte) {
	if s.ending && code != frame.CodeEnd {
		return // sent before the peer saw our end [AMQP 2.5.5]
	}
	scratch := &s.m.scratch
	switch code {
	case frame.CodeTransfer:
		t := &scratch.transfer
		if t.Decode(fields); fields.Err() == nil {
			s.onTransfer(t, payload)
		}
	case frame.CodeDisposition:
		d := &scratch.disposition
		if d.Decode(fields); fields.Err() == nil {
			s.onDisposition(d)
		}
	case frame.CodeFlow:
		f := &scratch.flow
		if f.Decode(fields); fields.Err() == nil {
			s.onFlow(f)
		}
	case frame.CodeAttach:
		s.onAttach(fields)
	case frame.CodeDetach:
		var d frame.Detach
		if d.Decode(fields); fields.Err() == nil {
			s.onDetach(&d)
		}
	case frame.CodeEnd:
		var e frame.End
		if e.Decode(fields); fields.Err() == nil {
			s.onEnd(&e)
		}
	default:
		s.m.fail(Errorf(CondNotImplemented, "unknown performative %v", code))
		return
	}
	if fields.Err() != nil {
		s.m.fail(decodeError(code.String(), fields.Err()))
	}
}

// onEnd ends the session; its links go with it, without a detach [AMQP 2.5.2].
func (s *Session) onEnd(e *frame.End) {
	m := s.m
	m.sessions.set(uint32(s.channel), nil)
	m.begun--
	m.mem.counter.Release(sessionCost)
	if !s.ending {
		s.flush()
		m.send(s.channel, new(frame.End))
	}
	var reason error
	if e.Error != nil {
		reason = fmt.Errorf("endpoint: the peer ended the session: %w", e.Error)
	}
	s.drop(reason)
}

// fail ends the session because of err.
func (s *Session) fail(err *Error) {
	s.flush()
	s.ending = true
	s.m.send(s.channel, &frame.End{Error: err})
	s.drop(err)
}

// drop takes every link away from the App.
func (s *Session) drop(reason error) {
	links := s.links.all()
	s.links, s.names = table[Link]{}, nil
	s.forget(func(*waiting) bool { return true })
	s.m.mem.owed -= len(s.received.list) + len(s.settled.list)
	s.received, s.settled = settlements{}, settlements{}
	s.sent = unsettledMap{}
	s.weigh()
	// All of them leave before the App hears of the first, lest it uses the
	// others.
	for _, l := range links {
		l.forgetParked()
		l.leave()
		l.end(reason)
	}
}

// touch makes the next flush of the machine flush s.
func (s *Session) touch() {
	if !s.dirty {
		s.dirty = true
		s.m.dirty = append(s.m.dirty, s)
	}
}

// flush sends what was collected: settlements first, because credit that is
// granted after them may depend on them in the eyes of a client.
func (s *Session) flush() {
	s.dirty = false
	if s.ending {
		return
	}
	s.received.flush(s, frame.Receiver)
	s.settled.flush(s, frame.Sender)
	for _, l := range s.flows {
		if l.flowDue && l.state == attached {
			l.sendFlow()
		}
		l.flowDue = false
	}
	s.flows = s.flows[:0]
	if s.flowDue {
		s.sendFlow(&frame.Flow{})
	}
}

// link returns the link with the given handle; without one the session ends
// [AMQP 2.6.2].
func (s *Session) link(handle uint32) *Link {
	if l := s.links.get(handle); l != nil {
		return l
	}
	s.fail(Errorf(CondUnattachedHandle, "no link has handle %d", handle))
	return nil
}
