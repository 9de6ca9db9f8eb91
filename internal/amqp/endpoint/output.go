// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"
	"strings"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// output collects what the peer is sent.
type output struct {
	bytes []byte
	spare []byte // the buffer before, while its bytes are being written
	cut   int    // Take stops here once; 0 for nowhere
	queue int    // bytes of deliveries that wait for a session window
	// answers counts the bytes that are no deliveries, of those that Take has not
	// returned yet.
	answers int
	writing int // bytes that Take returned last, while they are being written

	taken uint64 // bytes that Take has returned: where bytes begins in the stream
	marks []mark // deliveries that the transport may not have taken yet, in order
}

// mark says where a delivery ends in the stream of output.
type mark struct {
	end     uint64
	link    *Link
	ref     uint64
	settled bool
}

// mark notes that w has just been appended to the end.
func (o *output) mark(w *waiting) {
	o.marks = append(o.marks, mark{o.taken + uint64(len(o.bytes)), w.link, w.Ref, w.Settled})
}

// wrote says that the transport has taken everything before end.
func (m *Machine) wrote(end uint64) {
	n := 0
	for ; n < len(m.out.marks) && m.out.marks[n].end <= end; n++ {
		if k := &m.out.marks[n]; k.settled {
			m.tracker.Sent(k.link, k.ref)
		}
	}
	if n > 0 {
		rest := copy(m.out.marks, m.out.marks[n:])
		clear(m.out.marks[rest:])
		m.out.marks = m.out.marks[:rest]
	}
}

// Unwritten says that nothing more will be written, and that of what Take returned
// last so many bytes were not. The App learns which deliveries that were.
func (m *Machine) Unwritten(bytes int) {
	if m.tracker == nil {
		return
	}
	m.wrote(m.out.taken - uint64(bytes))
	for _, k := range m.out.marks {
		m.tracker.Unsent(k.link, k.ref)
	}
	m.out.marks = nil
}

func (o *output) len() int { return len(o.bytes) }

// split makes the bytes so far leave in a write of their own.
func (o *output) split() { o.cut = len(o.bytes) }

// maxSpare is the largest buffer kept for reuse; more than that was a burst.
const maxSpare = 2 << 20

// bulky reports whether the buffers are large.
func (o *output) bulky() bool { return cap(o.bytes)+cap(o.spare) > 64<<10 }

// Take returns what the peer is to be sent next, or nothing. The bytes are valid
// until the next call of Take; each call is one write, and says that the one before
// has succeeded.
func (m *Machine) Take() []byte {
	m.flush()
	o := &m.out
	if len(o.marks) > 0 {
		m.wrote(o.taken)
	}
	if len(o.bytes) == 0 {
		return nil
	}
	m.spoke = m.now
	m.recheck = m.recheck || m.congested()
	taken := o.bytes
	fresh := o.spare[:0]
	if cap(fresh) > maxSpare {
		fresh = nil
	}
	if o.cut > 0 {
		fresh = append(fresh, taken[o.cut:]...)
		taken = taken[:o.cut]
		o.cut = 0
	}
	o.bytes, o.spare = fresh, taken
	o.taken += uint64(len(taken))
	o.answers, o.writing = 0, len(taken)
	m.measure()
	return taken
}

// Pending reports whether Take would return anything.
func (m *Machine) Pending() bool { return len(m.out.bytes) > 0 || len(m.dirty) > 0 }

// flush turns what was collected by the sessions into frames.
func (m *Machine) flush() {
	for _, s := range m.dirty {
		s.flush()
	}
	m.dirty = m.dirty[:0]
}

// performative is what send takes.
type performative interface{ Append(dst []byte) []byte }

// send appends a frame without payload. One that is larger than the peer takes is sent
// with less of a reason, or ends the connection.
func (m *Machine) send(channel uint16, p performative) {
	if m.trySend(channel, p) || m.trySend(channel, shorter(p)) || m.closeErr != nil {
		return
	}
	m.closeErr = Errorf(CondFrameSizeTooSmall, "an answer does not fit into frames of %d bytes", m.maxFrame)
}

// trySend appends a frame unless it is nil or larger than the peer takes, and reports
// whether it did [AMQP 2.7.1 max-frame-size].
func (m *Machine) trySend(channel uint16, p performative) bool {
	if p == nil {
		return false
	}
	start := len(m.out.bytes)
	m.out.bytes = p.Append(frame.AppendHeader(m.out.bytes, frame.TypeAMQP, channel))
	if len(m.out.bytes)-start > m.maxFrame {
		m.out.bytes = m.out.bytes[:start]
		return false
	}
	frame.SetSize(m.out.bytes, start)
	m.out.answers += len(m.out.bytes) - start
	return true
}

// shorter returns p with less of a reason, nil if it has none.
func shorter(p performative) performative {
	switch p := p.(type) {
	case *frame.Close:
		return &frame.Close{Error: shortened(p.Error)}
	case *frame.End:
		return &frame.End{Error: shortened(p.Error)}
	case *frame.Detach:
		return &frame.Detach{Handle: p.Handle, Closed: p.Closed, Error: shortened(p.Error)}
	case *frame.Disposition:
		d := *p
		d.State = frame.State{Kind: p.State.Kind, Error: shortened(p.State.Error)}
		return &d
	}
	return nil
}

// shortened returns an error that fits into the smallest frame.
func shortened(e *Error) *Error {
	if e == nil {
		return nil
	}
	const most = 300 // of 512
	text := e.Description
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return &Error{Condition: e.Condition, Description: text}
}

func (m *Machine) sendSASL(p performative) {
	start := len(m.out.bytes)
	m.out.bytes = p.Append(frame.AppendHeader(m.out.bytes, frame.TypeSASL, 0))
	frame.SetSize(m.out.bytes, start)
}

// congested reports whether so much waits to be written, or is held for the peer
// otherwise, that links pretend to have no credit. While memory is short one delivery
// may leave at a time, so that deliveries that free memory go on.
func (m *Machine) congested() bool {
	waiting := m.out.len() + m.out.queue
	return waiting >= m.cfg.HighOutput || waiting+m.out.writing >= 4*m.cfg.HighOutput ||
		m.mem.full || m.mem.short && waiting > 0
}

// writtenOut says that what Take returned last has been written.
func (m *Machine) writtenOut() {
	if m.out.writing > 0 {
		m.recheck = m.recheck || m.congested()
		m.out.writing = 0
	}
}

// checkOutput dooms a peer that makes us keep more than it may. It is called
// from inside the App, which must not be called back here.
func (m *Machine) checkOutput() {
	if m.out.len()+m.out.queue > m.cfg.MaxOutput && m.closeErr == nil {
		m.closeErr = fmt.Errorf("%w: %w", errSlow,
			Errorf(CondResourceLimitExceeded, "too much output waits to be read"))
	}
}

// resumeBlocked calls the App for links that saw no credit because of congestion or a
// closed window, once that may have changed.
func (m *Machine) resumeBlocked() {
	if !m.recheck || m.congested() || m.phase == done {
		return
	}
	m.recheck = false
	links := m.blocked
	m.blocked = nil
	for _, l := range links {
		l.blocked = false
		waits := l.waits
		l.waits = false
		if waits || l.Credit() > 0 || l.Draining() && !l.blocked {
			m.app.Credit(l)
		}
	}
}
