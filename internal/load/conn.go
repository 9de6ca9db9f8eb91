// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// readSize is the buffer space for one read, and maxFrame the largest frame
// that we accept. The buffer has space for an incomplete frame and one more
// read.
const (
	readSize = 128 << 10
	maxFrame = 64 << 10
)

// channel is the channel of the only session.
const channel = 0

// conn is one connection with one session. It belongs to one goroutine.
type conn struct {
	nc   net.Conn
	ctx  context.Context
	in   []byte // read buffer
	from int    // where in in the next frame begins
	to   int    // where what was read ends
	out  []byte // to be written by flush

	maxFrame int           // largest frame the broker takes
	beat     time.Duration // longest silence we keep
	nextIn   uint32        // id of the broker's next transfer
	nextOut  uint32        // id of our next transfer
}

// dial connects, logs in and opens a session; links do the rest. The connection
// is open until close, or until ctx ends.
func dial(ctx context.Context, t Target) (*conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	if t.TLS {
		nc = tls.Client(nc, &tls.Config{ServerName: t.Host})
	}
	c := &conn{nc: nc, ctx: ctx, in: make([]byte, maxFrame+readSize), beat: time.Minute, maxFrame: frame.MinFrameSize}
	context.AfterFunc(ctx, func() { nc.SetReadDeadline(time.Unix(1, 0)) })
	if err := c.handshake(t); err != nil {
		nc.Close()
		return nil, fmt.Errorf("load: connect to %s: %w", t.Address, err)
	}
	return c, nil
}

// close waits for the broker to close its side, at most for closeTimeout: until then it
// may deliver messages of the next run to this connection, which would stay locked.
func (c *conn) close() {
	c.send(new(frame.Close))
	if c.flush() == nil { // else the broker has closed first
		_ = c.nc.SetReadDeadline(time.Now().Add(closeTimeout))
		_, _ = io.Copy(io.Discard, c.nc)
	}
	_ = c.nc.Close()
}

const closeTimeout = 2 * time.Second

// errClosed is a broker that says goodbye without a reason.
var errClosed = errors.New("load: the broker closed the connection")

// next returns the next frame that was read whole. Without one it returns false,
// and more has to be read. What it returns is valid until the next read.
func (c *conn) next() (code frame.Code, fields codec.Reader, payload []byte, ok bool, err error) {
	for c.to-c.from >= frame.HeaderSize {
		h := frame.ParseHeader(c.in[c.from:c.to])
		if h.Size < frame.HeaderSize || h.Size > maxFrame {
			return 0, fields, nil, false, frame.ErrHeader
		}
		if c.to-c.from < int(h.Size) {
			break
		}
		body, err := h.Body(c.in[c.from : c.from+int(h.Size)])
		c.from += int(h.Size)
		if err != nil {
			return 0, fields, nil, false, err
		}
		if len(body) == 0 {
			continue // a heartbeat
		}
		code, fields, payload, err = frame.Parse(body)
		return code, fields, payload, true, err
	}
	return 0, fields, nil, false, nil
}

// read waits for the broker to say something. A silence in which it would take us
// for dead is broken with an empty frame.
func (c *conn) read() error {
	if c.from > 0 {
		c.to = copy(c.in, c.in[c.from:c.to])
		c.from = 0
	}
	for {
		n, err := c.nc.Read(c.in[c.to:])
		c.to += n
		switch {
		case n > 0:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			if err := c.keepAlive(); err != nil {
				return err
			}
		case err != nil:
			return fmt.Errorf("load: read: %w", err)
		}
	}
}

func (c *conn) keepAlive() error {
	c.nc.SetReadDeadline(time.Now().Add(c.beat))
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	c.out = frame.AppendHeader(c.out, frame.TypeAMQP, 0)
	frame.SetSize(c.out, len(c.out)-frame.HeaderSize)
	return c.flush()
}

// flush writes what was gathered, at once.
func (c *conn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.nc.Write(c.out)
	c.out = c.out[:0]
	if err != nil {
		return fmt.Errorf("load: write: %w", err)
	}
	return nil
}

// loop handles what was read, grants credit and reads on, until an error ends it.
func (c *conn) loop(handle func() error, topUp func()) error {
	for {
		if err := handle(); err != nil {
			return err
		}
		topUp()
		if err := c.flush(); err != nil {
			return err
		}
		if err := c.read(); err != nil {
			return err
		}
	}
}

// frames hands over the transfers that were read, until there is no whole frame left, and
// then calls done.
func (c *conn) frames(transfer func(fields *codec.Reader, payload []byte), done func()) error {
	for {
		code, fields, payload, ok, err := c.next()
		if err != nil {
			return err
		}
		if !ok {
			done()
			return nil
		}
		if code == frame.CodeTransfer {
			transfer(&fields, payload)
		} else if err := refusal(code, &fields); err != nil {
			return err
		}
		if fields.Err() != nil {
			return fields.Err()
		}
	}
}

// grant gives the broker credit on a link on which we have received count deliveries.
func (c *conn) grant(handle, count, credit uint32) {
	c.send(&frame.Flow{
		NextIncomingID: c.nextIn, HasNextIncomingID: true,
		IncomingWindow: 1<<31 - 1, OutgoingWindow: 1<<31 - 1,
		Handle: handle, HasHandle: true,
		DeliveryCount: count, HasDeliveryCount: true,
		LinkCredit: credit, HasLinkCredit: true,
	})
}

type performative interface{ Append(dst []byte) []byte }

// send gathers a frame for flush.
func (c *conn) send(p performative) { c.sendTyped(frame.TypeAMQP, p) }

func (c *conn) sendTyped(t frame.Type, p performative) {
	start := len(c.out)
	c.out = p.Append(frame.AppendHeader(c.out, t, channel))
	frame.SetSize(c.out, start)
}

// refusal returns the error of a frame that ends the link, the session or the
// connection, and nil for any other frame.
func refusal(code frame.Code, fields *codec.Reader) error {
	var reason *frame.Error
	switch code {
	case frame.CodeDetach:
		var d frame.Detach
		d.Decode(fields)
		reason = d.Error
	case frame.CodeEnd:
		var e frame.End
		e.Decode(fields)
		reason = e.Error
	case frame.CodeClose:
		var c frame.Close
		c.Decode(fields)
		reason = c.Error
	default:
		return nil
	}
	if reason == nil {
		return errClosed
	}
	return fmt.Errorf("load: the broker says: %w", reason)
}
