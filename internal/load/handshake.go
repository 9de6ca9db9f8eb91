// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// handshake logs in, opens the connection and begins the session.
func (c *conn) handshake(t Target) error {
	if err := c.login(t); err != nil {
		return err
	}
	if err := c.protocol(frame.ProtocolAMQP); err != nil {
		return err
	}
	c.send(&frame.Open{ContainerID: "triagemq-bench", Hostname: t.Host, MaxFrameSize: maxFrame, ChannelMax: math.MaxUint16})
	c.send(&frame.Begin{IncomingWindow: math.MaxInt32, OutgoingWindow: math.MaxInt32, HandleMax: math.MaxUint32})
	if err := c.flush(); err != nil {
		return err
	}
	var open frame.Open
	if err := c.await(frame.CodeOpen, open.Decode); err != nil {
		return err
	}
	c.maxFrame = int(min(open.MaxFrameSize, maxFrame))
	if open.IdleTimeout > 0 {
		c.beat = time.Duration(open.IdleTimeout) * time.Millisecond / 2
	}
	c.nc.SetReadDeadline(time.Now().Add(c.beat))
	var begin frame.Begin
	if err := c.await(frame.CodeBegin, begin.Decode); err != nil {
		return err
	}
	c.nextIn = begin.NextOutgoingID
	return nil
}

func (c *conn) login(t Target) error {
	if err := c.protocol(frame.ProtocolSASL); err != nil {
		return err
	}
	var offer frame.Mechanisms
	if err := c.await(frame.CodeMechanisms, offer.Decode); err != nil {
		return err
	}
	init := frame.Init{Mechanism: "ANONYMOUS", Response: []byte("triagemq-bench"), HasResponse: true, Hostname: t.Host}
	if t.User != "" {
		init.Mechanism = "PLAIN"
		init.Response = []byte("\x00" + t.User + "\x00" + t.Password)
	}
	c.sendTyped(frame.TypeSASL, &init)
	if err := c.flush(); err != nil {
		return err
	}
	var outcome frame.Outcome
	if err := c.await(frame.CodeOutcome, outcome.Decode); err != nil {
		return err
	}
	if outcome.Code != frame.OutcomeOK {
		return errors.New("the broker rejected the login")
	}
	return nil
}

// protocol exchanges protocol headers [AMQP 2.2].
func (c *conn) protocol(id frame.ProtocolID) error {
	c.out = frame.AppendProtocol(c.out, id)
	if err := c.flush(); err != nil {
		return err
	}
	const size = 8
	for c.to-c.from < size {
		if err := c.read(); err != nil {
			return err
		}
	}
	got, ok := frame.ParseProtocol(c.in[c.from:c.to])
	c.from += size
	if !ok || got != id {
		return fmt.Errorf("the peer does not speak AMQP 1.0: %w", io.ErrUnexpectedEOF)
	}
	return nil
}

// await reads until a frame of that kind arrives, and decodes it.
func (c *conn) await(want frame.Code, decode func(*codec.Reader)) error {
	for {
		code, fields, _, ok, err := c.next()
		switch {
		case err != nil:
			return err
		case !ok:
			if err := c.read(); err != nil {
				return err
			}
		case code == want:
			decode(&fields)
			return fields.Err()
		default:
			if err := refusal(code, &fields); err != nil {
				return err
			}
		}
	}
}
