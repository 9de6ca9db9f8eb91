// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/objective"
)

// handle is the handle of the only link of a session.
const handle = 0

// sender is a connection that sends.
type sender struct {
	*conn
	run      *run
	template *messageTemplate
	window   int // deliveries that may wait for their answer
	batch    int // messages in a delivery

	credit   uint32 // deliveries the broker takes
	count    uint32 // deliveries sent
	oldest   uint32 // the first delivery without an answer; count if there is none
	inFlight int
	pending  []pending // by delivery id, from oldest to count; its length is a power of two
	payload  []byte    // scratch

	confirms objective.Histogram // from sending to the broker's answer
	refused  uint64
	reason   error // why the first was rejected
}

// pending is a delivery without an answer.
type pending struct {
	sent     time.Duration // since the run began
	messages int           // zero once it is answered
}

func (r *run) newSender(c *conn, s *messageTemplate, window int) (*sender, error) {
	size := 1
	for size < window {
		size *= 2
	}
	out := &sender{conn: c, run: r, template: s, window: window, batch: max(1, r.cfg.Batch), pending: make([]pending, size)}
	c.send(&frame.Attach{
		Name: r.linkName("sender"), Handle: handle, Role: frame.Sender,
		SenderSettleMode: frame.SenderUnsettled,
		Source:           &frame.Source{Address: r.entity()},
		Target:           &frame.Target{Address: r.entity()},
	})
	if err := c.flush(); err != nil {
		return nil, err
	}
	return out, c.awaitAttach()
}

// awaitAttach waits until the broker has attached its end of the link. A
// refused link is attached without a terminus and then detached [AMQP 2.6.3].
func (c *conn) awaitAttach() error {
	var a frame.Attach
	if err := c.await(frame.CodeAttach, a.Decode); err != nil {
		return err
	}
	if a.Source == nil || a.Target == nil {
		var d frame.Detach
		if err := c.await(frame.CodeDetach, d.Decode); err != nil {
			return err
		}
		if d.Error == nil {
			return errClosed
		}
		return fmt.Errorf("load: the broker says: %w", d.Error)
	}
	return nil
}

// work sends as long as quota allows, and returns when every message has been
// answered.
func (s *sender) work(q *quota) error {
	more := true
	for {
		// The broker's first flow may have arrived with its attach.
		if err := s.handle(); err != nil {
			return err
		}
		if q.whole && s.refused > 0 {
			q.end()
		}
		if more {
			more = s.fill(q)
		}
		if err := s.flush(); err != nil {
			return err
		}
		if !more && s.inFlight == 0 {
			return nil
		}
		if err := s.read(); err != nil {
			return err
		}
	}
}

// fill gathers as many deliveries as window and credit allow and reports whether
// there may be more later.
func (s *sender) fill(q *quota) bool {
	// Refusals come before the answers of messages that wait for the disk: the oldest may
	// be unanswered long after those behind it. Its place is not used again before.
	space := min(s.window-s.inFlight, int(s.credit), len(s.pending)-int(s.count-s.oldest))
	if space <= 0 {
		return true
	}
	now := s.run.since()
	for range space {
		if wait := q.wait(now); wait > 0 {
			if s.inFlight > 0 && wait > time.Millisecond {
				return true // answers are due before
			}
			time.Sleep(wait)
			now = s.run.since()
		}
		first, n := q.take(now, s.batch)
		if n == 0 {
			return false
		}
		s.transfer(first, n, now)
	}
	return true
}

// transfer gathers one delivery of n messages.
func (s *sender) transfer(first uint64, n int, now time.Duration) {
	t := frame.Transfer{Handle: handle, DeliveryID: s.count, HasDeliveryID: true}
	if s.batch > 1 {
		t.MessageFormat = uint32(message.FormatBatch)
		s.payload = s.template.appendBatch(s.payload[:0], first, n, now)
	} else {
		s.payload = s.template.append(s.payload[:0], first, now)
	}
	var tag [4]byte
	binary.BigEndian.PutUint32(tag[:], s.count)
	t.DeliveryTag = tag[:]
	s.pending[int(s.count)&(len(s.pending)-1)] = pending{now, n}
	s.count++
	s.credit--
	s.inFlight++

	for rest := s.payload; ; t = (frame.Transfer{Handle: handle}) {
		part := rest
		if space := s.maxFrame - frame.MaxTransfer; len(part) > space {
			part, t.More = part[:space], true
		}
		start := len(s.out)
		s.out = append(t.Append(frame.AppendHeader(s.out, frame.TypeAMQP, channel)), part...)
		frame.SetSize(s.out, start)
		s.nextOut++
		if rest = rest[len(part):]; len(rest) == 0 {
			return
		}
	}
}

// handle processes a frame of the broker.
func (s *sender) handle() error {
	accepted := 0
	now := s.run.since()
	for {
		code, fields, _, ok, err := s.next()
		if err != nil {
			return err
		}
		if !ok {
			s.run.in.Add(uint64(accepted))
			return nil
		}
		switch code {
		case frame.CodeDisposition:
			accepted += s.answered(&fields, now)
		case frame.CodeFlow:
			s.onFlow(&fields)
		default:
			if err := refusal(code, &fields); err != nil {
				return err
			}
		}
		if fields.Err() != nil {
			return fields.Err()
		}
	}
}

// answered takes a disposition and returns how many messages it accepts.
func (s *sender) answered(fields *codec.Reader, now time.Duration) (accepted int) {
	var d frame.Disposition
	if d.Decode(fields); d.Role != frame.Receiver || fields.Err() != nil {
		return 0
	}
	for id := d.First; int32(d.Last-id) >= 0; id++ {
		p := &s.pending[int(id)&(len(s.pending)-1)]
		if p.messages == 0 {
			continue
		}
		if d.State.Kind == frame.StateAccepted {
			accepted += p.messages
			s.confirms.Record(now - p.sent)
		} else {
			s.refused += uint64(p.messages)
			if s.reason == nil && d.State.Error != nil {
				s.reason = fmt.Errorf("load: the broker rejected a message: %w", d.State.Error)
			}
		}
		*p = pending{}
		s.inFlight--
	}
	for s.oldest != s.count && s.pending[int(s.oldest)&(len(s.pending)-1)].messages == 0 {
		s.oldest++
	}
	return accepted
}

func (s *sender) onFlow(fields *codec.Reader) {
	var f frame.Flow
	if f.Decode(fields); f.HasHandle && f.HasLinkCredit {
		s.credit = f.DeliveryCount + f.LinkCredit - s.count
	}
}
