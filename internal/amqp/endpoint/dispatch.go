// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"fmt"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// onFrame takes a frame apart.
func (m *Machine) onFrame(b []byte) {
	h := frame.ParseHeader(b)
	body, err := h.Body(b)
	if err != nil {
		m.fail(Errorf(CondFramingError, "data offset of %d words in a frame of %d bytes", h.Doff, h.Size))
		return
	}
	sasl := m.phase == awaitInit || m.phase == awaitResponse
	if sasl != (h.Type == frame.TypeSASL) || h.Type > frame.TypeSASL {
		m.fail(Errorf(CondFramingError, "unexpected frame type %d", h.Type))
		return
	}
	if len(body) == 0 {
		return // a heartbeat
	}
	m.size = len(body)
	code, fields, payload, err := frame.Parse(body)
	if code == frame.CodeAttach || code == frame.CodeOpen {
		// These live longer than their frame.
		code, fields, payload, err = frame.Parse(bytes.Clone(body))
	}
	if err != nil {
		m.fail(decodeError("performative", err))
		return
	}
	switch {
	case sasl:
		m.onSASL(code, &fields)
	case m.phase == awaitOpen:
		m.onOpen(code, &fields)
	default:
		m.onPerformative(h.Channel, code, &fields, payload)
	}
}

// onPerformative hands a performative to whom it concerns. payload is what comes
// after it in its frame.
func (m *Machine) onPerformative(channel uint16, code frame.Code, fields *codec.Reader, payload []byte) {
	if channel > m.cfg.ChannelMax { // [AMQP 2.7.1] channel-max
		m.fail(Errorf(CondFramingError, "channel %d; the highest is %d", channel, m.cfg.ChannelMax))
		return
	}
	switch code {
	case frame.CodeOpen:
		m.fail(Errorf(CondNotAllowed, "second open"))
		return
	case frame.CodeClose:
		m.onClose(fields)
		return
	case frame.CodeBegin:
		m.onBegin(channel, fields)
		return
	}
	s := m.session(channel)
	switch {
	case s != nil:
		s.onPerformative(code, fields, payload)
	case code == frame.CodeEnd:
		// go-amqp sends it for a session whose begin it gave up on before it
		// was written. There is nothing to end, and nothing to be angry about.
	default:
		m.fail(Errorf(CondNotAllowed, "%v on channel %d, which has no session", code, channel))
	}
}

// session returns the session on a channel, or nil.
func (m *Machine) session(channel uint16) *Session {
	return m.sessions.get(uint32(channel))
}

func (m *Machine) onClose(fields *codec.Reader) {
	var c frame.Close
	c.Decode(fields)
	m.flush()
	m.send(0, new(frame.Close))
	if c.Error != nil {
		m.finish(fmt.Errorf("endpoint: the peer closed the connection: %w", c.Error))
		return
	}
	m.finish(errClosed)
}

func decodeError(what string, err error) *Error {
	return Errorf(CondDecodeError, "%s: %v", what, err)
}
