// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"cmp"
	"fmt"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/limits"
)

// onAttach asks the App for a link [AMQP 2.6.3].
func (s *Session) onAttach(fields *codec.Reader) {
	remote := new(frame.Attach)
	if remote.Decode(fields); fields.Err() != nil {
		return
	}
	m := s.m
	if remote.Handle > m.cfg.HandleMax { // [AMQP 2.7.2] handle-max
		m.fail(Errorf(CondFramingError, "handle %d; the highest is %d", remote.Handle, m.cfg.HandleMax))
		return
	}
	if s.links.get(remote.Handle) != nil {
		s.fail(Errorf(CondHandleInUse, "handle %d is attached", remote.Handle))
		return
	}
	if m.links >= m.maxLinks()+limits.RefusedLinks {
		m.fail(Errorf(CondResourceLimitExceeded, "%d links, with those that were refused; answer their detach", m.links))
		return
	}
	if m.mem.unpaid >= limits.RefusedLinks {
		m.fail(Errorf(CondResourceLimitExceeded, "%d links were refused for lack of memory; answer their detach", m.mem.unpaid))
		return
	}
	l := &Link{session: s, remote: remote, handle: remote.Handle}
	if remote.Role == frame.Sender {
		l.count = remote.InitialDeliveryCount
	}
	s.steal(l)
	m.reportEnded() // the App hears of the old one first
	s.links.set(l.handle, l)
	m.links++

	err := l.admit(m.size)
	if err == nil {
		err = m.unfit(l)
	}
	if err != nil {
		l.Refuse(err)
		return
	}
	l.offered = true
	m.app.Attach(l)
}

// steal detaches the link that has the name of l now. A peer that attaches a name
// twice has lost its first link somehow; the new one counts [AMQP 2.6.1].
func (s *Session) steal(l *Link) {
	key := linkKey{l.remote.Name, l.remote.Role}
	if old := s.names[key]; old != nil {
		old.detachWithError(Errorf(CondStolen, "link %.64q was attached again", l.remote.Name))
	}
	if s.names == nil {
		s.names = make(map[linkKey]*Link)
	}
	s.names[key] = l
}

// unfit returns why a link cannot be, whatever the App thinks of it.
func (m *Machine) unfit(l *Link) error {
	switch {
	case m.stop != notStopping:
		return Errorf(CondDetachForced, textStopping)
	case len(l.remote.Name) > limits.LinkName:
		return Errorf(CondInvalidField, "the name of the link has %d bytes; the limit is %d", len(l.remote.Name), limits.LinkName)
	case longestAddress(l.remote) > limits.LinkAddress:
		return Errorf(CondInvalidField, "an address of the link has %d bytes; the limit is %d", longestAddress(l.remote), limits.LinkAddress)
	case resumes(l.remote):
		return Errorf(CondNotImplemented, "links cannot be resumed; attach without unsettled deliveries")
	case m.links > m.maxLinks():
		return Errorf(CondResourceLimitExceeded, "more than %d links in a connection", m.maxLinks())
	case l.handle > l.session.handleMax:
		return Errorf(CondNotAllowed, "handle %d is above your own handle-max", l.handle)
	}
	return nil
}

// longestAddress returns how many bytes the longer address of a link has.
func longestAddress(a *frame.Attach) int {
	n := 0
	if a.Source != nil {
		n = len(a.Source.Address)
	}
	if a.Target != nil {
		n = max(n, len(a.Target.Address))
	}
	return n
}

// resumes reports whether the peer wants to go on with deliveries of an earlier
// link [AMQP 2.6.13]. An empty map says that there are none.
func resumes(a *frame.Attach) bool {
	if a.Unsettled == nil {
		return false
	}
	v, err := codec.ParseValue(a.Unsettled)
	if err != nil {
		return true
	}
	for range v.Map() {
		return true
	}
	return a.IncompleteUnsettled
}

// emptyMap is an encoded map without entries.
var emptyMap = []byte{0xc1, 0x01, 0x00}

// Accept attaches our end of the link.
func (l *Link) Accept(a Accept) {
	if l.state != attachPending || l.session.m.phase == done {
		return
	}
	l.state = attached
	m := l.session.m
	reply := l.reply()
	reply.Source = cmp.Or(a.Source, l.remote.Source)
	if a.Target != nil {
		reply.Target = a.Target
	} else {
		reply.Target, reply.Coordinator = l.remote.Target, l.remote.Coordinator
	}
	reply.MaxMessageSize = a.MaxMessageSize
	if l.Role() == frame.Receiver {
		l.maxMessage = cmp.Or(a.MaxMessageSize, m.cfg.MaxMessageSize)
		reply.MaxMessageSize = l.maxMessage
	}
	if reply.Properties = a.Properties; reply.Properties == nil && l.remote.Properties != nil {
		reply.Properties = emptyMap // the SDKs for Python add ours to theirs
	}
	reply.OfferedCapabilities = a.OfferedCapabilities
	if !m.trySend(l.session.channel, reply) {
		l.state = attachPending
		l.Refuse(Errorf(CondFrameSizeTooSmall, "the answer does not fit into frames of %d bytes", m.maxFrame))
		return
	}

	if l.Role() == frame.Sender {
		if l.credit > 0 || l.draining { // the peer did not wait for the answer
			l.blockLink()
			m.recheck = true
		}
		return
	}
	if a.Credit > 0 {
		l.window, l.credit = a.Credit, a.Credit
		l.sendFlow()
	}
}

// reply is the part of our attach that is the same for yes and no.
func (l *Link) reply() *frame.Attach {
	return &frame.Attach{
		Name: l.remote.Name, Handle: l.handle, Role: l.Role(),
		SenderSettleMode:   l.remote.SenderSettleMode,
		ReceiverSettleMode: l.remote.ReceiverSettleMode,
	}
}

// Refuse turns the peer's attach down with err. An err that is no [Error] is
// reported without its text.
//
// The link is attached without source and target and detached at once, which is
// how AMQP says no [AMQP 2.6.3]. Both are left out, and both frames leave in one
// write, because some clients look at one of them only, or do not wait.
func (l *Link) Refuse(err error) {
	if l.state != attachPending || l.session.m.phase == done {
		return
	}
	l.session.m.send(l.session.channel, l.reply())
	l.detach(err)
}

// Detach closes the link with err, or without a reason when err is nil. The App is
// told that it is gone like of any other link.
func (l *Link) Detach(err error) {
	switch {
	case l.state == attachPending:
		l.Refuse(err)
	case l.Attached():
		l.detach(err)
	}
}

// detach closes our end. The handle stays taken until the peer has answered.
func (l *Link) detach(err error) {
	s := l.session
	s.flush() // what was settled on the link is said while it is there
	s.m.send(s.channel, &frame.Detach{Handle: l.handle, Closed: true, Error: wireError(err)})
	l.state = detaching
	l.release()
	l.end(err)
}

// detachWithError closes the link because the peer broke a rule.
func (l *Link) detachWithError(err *Error) { l.Detach(err) }

// end has the App told that the link is gone, unless it was before. It is the one
// place where that begins, and Machine.reportEnded where it is done.
func (l *Link) end(err error) {
	if l.reported || !l.offered {
		return
	}
	l.reported = true
	l.session.m.ended = append(l.session.m.ended, ended{l, err})
}

// ended is a link that is gone, and why.
type ended struct {
	link *Link
	err  error
}

// reportEnded tells the App which links are gone. It may end others meanwhile.
func (m *Machine) reportEnded() {
	if m.ended == nil {
		return
	}
	for len(m.ended) > 0 {
		e := m.ended[0]
		m.ended = m.ended[1:]
		m.app.Detached(e.link, e.err)
	}
	m.ended = nil
}

// onDetach answers the peer's detach, or takes it for the answer to ours
// [AMQP 2.6.6].
func (s *Session) onDetach(d *frame.Detach) {
	l := s.link(d.Handle)
	if l == nil {
		return
	}
	s.links.set(l.handle, nil)
	if l.state == detaching {
		l.leave()
		return
	}
	if l.state == attachPending {
		s.m.send(s.channel, l.reply())
	}
	s.flush()
	s.m.send(s.channel, &frame.Detach{Handle: l.handle, Closed: d.Closed})
	var reason error
	if d.Error != nil {
		reason = fmt.Errorf("endpoint: the peer detached the link: %w", d.Error)
	}
	l.release()
	l.leave()
	l.end(reason)
}

// release gives back what the session keeps for the link.
func (l *Link) release() {
	s := l.session
	key := linkKey{l.remote.Name, l.remote.Role}
	if s.names[key] == l {
		delete(s.names, key)
	}
	if l.queued > 0 || len(s.queue) > 0 {
		s.forget(func(w *waiting) bool { return w.link == l })
	}
	l.forgetParked()
	if l.out > 0 {
		s.sent.forget(l)
		s.weigh()
		l.out = 0
	}
	l.endPartial()
}

// leave takes the link away.
func (l *Link) leave() {
	l.state = gone
	l.session.m.links--
	l.endPartial()
	l.session.m.mem.counter.Release(l.cost)
	l.cost = 0
	if l.unpaid {
		l.session.m.mem.unpaid--
		l.unpaid = false
	}
}
