// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
)

const anonymous = "ANONYMOUS"

// onFirstHeader answers the header that a connection begins with [AMQP 2.2]. A
// peer that wants something else than we have is shown what we have.
func (m *Machine) onFirstHeader(b []byte) {
	id, ok := frame.ParseProtocol(b)
	switch {
	case ok && id == frame.ProtocolSASL:
		m.out.bytes = frame.AppendProtocol(m.out.bytes, frame.ProtocolSASL)
		m.sendSASL(&frame.Mechanisms{Server: m.app.Mechanisms()})
		m.phase = awaitInit
	case ok && id == frame.ProtocolAMQP && m.loginAnonymous() == nil:
		m.out.bytes = frame.AppendProtocol(m.out.bytes, frame.ProtocolAMQP)
		m.phase = awaitOpen
	default:
		m.out.bytes = frame.AppendProtocol(m.out.bytes, frame.ProtocolSASL)
		m.finish(fmt.Errorf("%w: % x", errProtocol, b))
	}
}

// loginAnonymous logs in a peer that left SASL out, which is legal.
func (m *Machine) loginAnonymous() error {
	if !slices.Contains(m.app.Mechanisms(), anonymous) {
		return errLogin
	}
	return m.app.Login(anonymous, nil)
}

func (m *Machine) onSASL(code frame.Code, fields *codec.Reader) {
	switch {
	case code == frame.CodeInit && m.phase == awaitInit:
		var init frame.Init
		init.Decode(fields)
		if fields.Err() != nil {
			break
		}
		m.mechanism = init.Mechanism
		if !init.HasResponse && init.Mechanism == "PLAIN" {
			// PLAIN is one message of the client, which may hold it back until
			// it is asked [RFC 4422 3].
			m.sendSASL(new(frame.Challenge))
			m.phase = awaitResponse
			return
		}
		m.login(init.Response)
		return
	case code == frame.CodeResponse && m.phase == awaitResponse:
		var response frame.Response
		response.Decode(fields)
		if fields.Err() != nil {
			break
		}
		m.login(response.Response)
		return
	}
	m.refuseLogin(fmt.Errorf("%w: bad %v", errLogin, code))
}

func (m *Machine) login(response []byte) {
	if !slices.Contains(m.app.Mechanisms(), m.mechanism) {
		m.refuseLogin(fmt.Errorf("%w: mechanism %q is not on offer", errLogin, m.mechanism))
		return
	}
	if err := m.app.Login(m.mechanism, response); err != nil {
		m.refuseLogin(fmt.Errorf("%w: %w", errLogin, err))
		return
	}
	m.sendSASL(&frame.Outcome{Code: frame.OutcomeOK})
	// rhea does not look at bytes that arrive together with the outcome.
	m.out.split()
	m.phase = awaitAMQP
}

func (m *Machine) refuseLogin(err error) {
	m.sendSASL(&frame.Outcome{Code: frame.OutcomeAuth})
	m.finish(err)
}

// onSecondHeader answers the header after SASL [AMQP 5.3.2].
func (m *Machine) onSecondHeader(b []byte) {
	m.out.bytes = frame.AppendProtocol(m.out.bytes, frame.ProtocolAMQP)
	if id, ok := frame.ParseProtocol(b); !ok || id != frame.ProtocolAMQP {
		m.finish(fmt.Errorf("%w: % x", errProtocol, b))
		return
	}
	m.phase = awaitOpen
}

func (m *Machine) onOpen(code frame.Code, fields *codec.Reader) {
	if code != frame.CodeOpen {
		m.fail(Errorf(CondNotAllowed, "%v before open", code))
		return
	}
	var open frame.Open
	open.Decode(fields)
	if fields.Err() != nil {
		m.fail(decodeError("open", fields.Err()))
		return
	}
	m.maxFrame = int(max(frame.MinFrameSize, min(open.MaxFrameSize, m.cfg.MaxFrameSize)))
	if open.IdleTimeout > 0 {
		// Half of what the peer bears, but never so often that it hurts.
		half := time.Duration(open.IdleTimeout) * time.Millisecond / 2
		m.heartbeat = max(minHeartbeat, min(m.heartbeat, half))
	}
	m.mem.counter.Add(int64(m.size)) // the App may keep it
	m.sendOpen()
	m.phase = running
	if err := m.app.Opened(&open); err != nil {
		m.fail(err)
	}
}

// sendOpen sends our open unless it was sent before.
func (m *Machine) sendOpen() {
	if m.opened {
		return
	}
	m.opened = true
	m.send(0, &frame.Open{
		ContainerID:  m.cfg.ContainerID,
		MaxFrameSize: m.cfg.MaxFrameSize,
		ChannelMax:   m.cfg.ChannelMax,
		IdleTimeout:  uint32(m.cfg.IdleTimeout.Milliseconds()),
	})
}
