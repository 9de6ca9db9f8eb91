// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// waiting is a delivery, or the rest of one, that waits for the session's window
// to open.
type waiting struct {
	Outgoing
	link    *Link
	started bool // its first transfer was sent
}

// Send sends a delivery. It fails with [ErrNoCredit], [ErrDetached] or
// [ErrTooLarge], and then the delivery did not happen; the App has to put it
// back.
func (l *Link) Send(o Outgoing) error {
	switch {
	case !l.Attached() || l.Role() != frame.Sender:
		return ErrDetached
	case l.credit <= l.queued:
		return ErrNoCredit
	case l.remote.MaxMessageSize > 0 && uint64(len(o.Payload)) > l.remote.MaxMessageSize:
		return ErrTooLarge
	}
	s := l.session
	w := waiting{Outgoing: o, link: l}
	if len(s.queue) == 0 && s.emit(&w) {
		s.m.checkOutput()
		return nil
	}
	if !w.started {
		l.queued++
	}
	kept := w
	kept.Tag, kept.Payload = bytes.Clone(w.Tag), bytes.Clone(w.Payload)
	s.m.out.queue += len(kept.Payload)
	s.m.mem.waiting++
	s.queue = append(s.queue, &kept)
	s.m.checkOutput()
	return nil
}

// emit sends as much of w as the window allows and reports whether that was all.
// Ids are assigned here and not before, because they must be consecutive on the
// wire and a delivery that only waits may yet be forgotten.
func (s *Session) emit(w *waiting) bool {
	m := s.m
	for s.outWindow > 0 {
		t := &m.scratch.send
		*t = frame.Transfer{Handle: w.link.handle}
		if !w.started {
			s.begin(w, t)
		}
		part := w.Payload
		if space := m.maxFrame - frame.MaxTransfer; len(part) > space {
			part, t.More = part[:space], true
		}
		start := len(m.out.bytes)
		b := t.Append(frame.AppendHeader(m.out.bytes, frame.TypeAMQP, s.channel))
		b = append(b, part...)
		frame.SetSize(b, start)
		m.out.bytes = b

		s.nextOut++
		s.outWindow--
		w.Payload = w.Payload[len(part):]
		if !t.More {
			if m.tracker != nil {
				m.out.mark(w)
			}
			return true
		}
	}
	return false
}

// begin makes t the first transfer of w.
func (s *Session) begin(w *waiting, t *frame.Transfer) {
	w.started = true
	w.link.count++
	w.link.credit--
	t.HasDeliveryID = true
	t.DeliveryTag = w.Tag
	t.MessageFormat = w.Format
	t.Settled = w.Settled
	full := s.sent.full()
	if w.Settled {
		t.DeliveryID = s.sent.skip()
	} else {
		w.link.out++
		t.DeliveryID = s.sent.put(entry{link: w.link, ref: w.Ref, value: w.Value})
	}
	if full {
		s.weigh()
	}
}

// drain sends what waited for the window, oldest first.
func (s *Session) drain() {
	n := 0
	for _, w := range s.queue {
		queued, before := !w.started, len(w.Payload)
		all := s.emit(w)
		s.m.out.queue -= before - len(w.Payload)
		if queued && w.started {
			w.link.queued--
		}
		if !all {
			break
		}
		n++
		s.m.mem.waiting--
		if w.link.drained && w.link.leaving() == 0 {
			w.link.DrainDone()
		}
	}
	clear(s.queue[:n])
	s.queue = s.queue[n:]
	if n > 0 && len(s.queue) == 0 {
		s.queue = nil
		s.m.recheck = true
	}
}

// forget drops the deliveries that match and were not sent, or not to the end.
func (s *Session) forget(match func(*waiting) bool) {
	kept := s.queue[:0]
	for _, w := range s.queue {
		if !match(w) {
			kept = append(kept, w)
			continue
		}
		s.m.out.queue -= len(w.Payload)
		s.m.mem.waiting--
		if !w.started {
			w.link.queued--
		}
		if s.m.tracker != nil {
			s.m.tracker.Unsent(w.link, w.Ref)
		}
	}
	clear(s.queue[len(kept):])
	s.queue = kept
	s.m.recheck = true
}
