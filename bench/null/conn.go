// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/notify"
)

// conn is one peer: a goroutine that reads and one that writes.
type conn struct {
	nc net.Conn
	f  *fifo

	out    []byte        // guarded by fifo.mu: to be written
	closed bool          // guarded by fifo.mu
	wake   notify.Signal // out has something

	// The rest is the reader's.
	takers map[uint32]*taker
	counts map[uint32]uint32 // deliveries on each link that the peer sends on
	batch  arrivals          // of the read that is being handled
}

func newConn(nc net.Conn, f *fifo) *conn {
	return &conn{nc: nc, f: f, wake: notify.New(), takers: map[uint32]*taker{}, counts: map[uint32]uint32{}}
}

// serve serves the peer until it disconnects.
func (c *conn) serve() {
	var writer sync.WaitGroup
	writer.Go(c.write)
	if err := c.read(); !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, "null:", err)
	}
	c.f.leave(c)
	c.f.mu.Lock()
	c.closed = true
	c.wake.Notify()
	c.f.mu.Unlock()
	writer.Wait()
	c.nc.Close()
}

// write writes what there is, all of it at once, until the connection is closed.
func (c *conn) write() {
	var spare []byte
	for range c.wake {
		c.f.mu.Lock()
		out, closed := c.out, c.closed
		c.out = spare[:0]
		c.f.mu.Unlock()
		if _, err := c.nc.Write(out); err != nil || closed {
			return
		}
		spare = out
	}
}

// read handles what the peer sends, a whole read at a time.
func (c *conn) read() error {
	buf, n := make([]byte, 64<<10), 0
	for {
		got, err := c.nc.Read(buf[n:])
		if err != nil {
			return err
		}
		n += got
		used, err := c.handle(buf[:n])
		if err != nil {
			return err
		}
		if used == 0 && n == len(buf) {
			buf = append(buf, make([]byte, len(buf))...)
		}
		n = copy(buf, buf[used:n])
		if len(c.batch.bodies) > 0 {
			if err := c.f.put(c.batch); err != nil {
				return err
			}
			c.batch = arrivals{}
		}
	}
}

// handle handles the whole frames in b and returns how many bytes they are.
func (c *conn) handle(b []byte) (used int, err error) {
	for rest := b; len(rest) >= frame.HeaderSize; rest = b[used:] {
		if id, ok := frame.ParseProtocol(rest); ok {
			c.greet(id)
			used += frame.HeaderSize
			continue
		}
		size := int(binary.BigEndian.Uint32(rest))
		if size > len(rest) {
			break
		}
		if err := c.frame(rest[:size]); err != nil {
			return used, err
		}
		used += size
	}
	return used, nil
}

// greet answers a protocol header. SASL, if the peer requests it, accepts every
// login.
func (c *conn) greet(id frame.ProtocolID) {
	c.append(func(out []byte) []byte {
		out = frame.AppendProtocol(out, id)
		if id == frame.ProtocolAMQP {
			return appendFrame(out, frame.TypeAMQP, 0, &frame.Open{ContainerID: "null", MaxFrameSize: 64 << 10, ChannelMax: 65535})
		}
		return appendFrame(out, frame.TypeSASL, 0, &frame.Mechanisms{Server: []string{"ANONYMOUS"}})
	})
}

func (c *conn) frame(b []byte) error {
	h := frame.ParseHeader(b)
	body, err := h.Body(b)
	if err != nil || len(body) == 0 {
		return err
	}
	code, fields, payload, err := frame.Parse(body)
	if err != nil {
		return err
	}
	switch code {
	case frame.CodeTransfer:
		c.transfer(h.Channel, &fields, payload)
	case frame.CodeDisposition, frame.CodeOpen:
	case frame.CodeFlow:
		var f frame.Flow
		f.Decode(&fields)
		if t := c.takers[f.Handle]; t != nil && f.HasHandle {
			c.f.grant(t, f.DeliveryCount, f.LinkCredit)
		}
	case frame.CodeInit:
		c.send(frame.TypeSASL, 0, &frame.Outcome{})
	case frame.CodeBegin:
		c.send(frame.TypeAMQP, h.Channel, &frame.Begin{
			RemoteChannel: h.Channel, HasRemoteChannel: true,
			IncomingWindow: window, OutgoingWindow: window, HandleMax: 255,
		})
	case frame.CodeAttach:
		c.attach(h.Channel, &fields)
	case frame.CodeDetach:
		var d frame.Detach
		d.Decode(&fields)
		c.send(frame.TypeAMQP, h.Channel, &frame.Detach{Handle: d.Handle, Closed: d.Closed})
	case frame.CodeEnd:
		c.send(frame.TypeAMQP, h.Channel, new(frame.End))
	case frame.CodeClose:
		c.send(frame.TypeAMQP, 0, new(frame.Close))
		return io.EOF
	default:
		return fmt.Errorf("a %v is nothing for a null server", code)
	}
	return fields.Err()
}

// window is larger than anything a benchmark sends in one session, and credit is
// what a sending peer has, renewed when half of it is used.
const (
	window = 1<<31 - 1
	credit = 1000
)

func (c *conn) attach(channel uint16, fields *codec.Reader) {
	var a frame.Attach
	a.Decode(fields)
	c.send(frame.TypeAMQP, channel, &frame.Attach{
		Name: a.Name, Handle: a.Handle, Role: !a.Role, SenderSettleMode: a.SenderSettleMode,
		ReceiverSettleMode: a.ReceiverSettleMode, Source: a.Source, Target: a.Target,
	})
	if a.Role == frame.Sender {
		c.grant(channel, a.Handle)
		return
	}
	t := &taker{c: c, channel: channel, handle: a.Handle}
	c.takers[a.Handle] = t
	c.f.attach(t)
}

// grant grants credit to a sending peer.
func (c *conn) grant(channel uint16, handle uint32) {
	c.send(frame.TypeAMQP, channel, &frame.Flow{
		HasNextIncomingID: true, NextIncomingID: c.counts[handle], IncomingWindow: window, OutgoingWindow: window,
		HasHandle: true, Handle: handle,
		HasDeliveryCount: true, DeliveryCount: c.counts[handle], HasLinkCredit: true, LinkCredit: credit,
	})
}

// transfer adds a message to what the read brought.
func (c *conn) transfer(channel uint16, fields *codec.Reader, payload []byte) {
	var t frame.Transfer
	t.Decode(fields)
	if len(c.batch.bodies) == 0 {
		c.batch.from, c.batch.channel, c.batch.first = c, channel, t.DeliveryID
	}
	c.batch.last = t.DeliveryID
	c.batch.bodies = append(c.batch.bodies, bytes.Clone(payload))
	n := c.counts[t.Handle] + 1
	if c.counts[t.Handle] = n; n%(credit/2) == 0 {
		c.grant(channel, t.Handle)
	}
}

// accept accepts messages; fifo.mu is held.
func (c *conn) accept(channel uint16, first, last uint32) {
	c.out = appendFrame(c.out, frame.TypeAMQP, channel, &frame.Disposition{
		Role: frame.Receiver, First: first, Last: last, Settled: true, State: frame.Accepted(),
	})
	c.wake.Notify()
}

// deliver sends a message; fifo.mu is held.
func (c *conn) deliver(t *taker, body []byte) {
	var tag [4]byte
	binary.BigEndian.PutUint32(tag[:], t.count)
	start := len(c.out)
	x := frame.Transfer{Handle: t.handle, DeliveryID: t.count, HasDeliveryID: true, DeliveryTag: tag[:]}
	c.out = x.Append(frame.AppendHeader(c.out, frame.TypeAMQP, t.channel))
	c.out = append(c.out, body...)
	frame.SetSize(c.out, start)
	t.count++
	t.credit--
	c.wake.Notify()
}

func (c *conn) send(t frame.Type, channel uint16, p performative) {
	c.append(func(out []byte) []byte { return appendFrame(out, t, channel, p) })
}

// append has f add to what is to be written.
func (c *conn) append(f func(out []byte) []byte) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.out = f(c.out)
	c.wake.Notify()
}

type performative interface{ Append(dst []byte) []byte }

func appendFrame(out []byte, t frame.Type, channel uint16, p performative) []byte {
	start := len(out)
	out = p.Append(frame.AppendHeader(out, t, channel))
	frame.SetSize(out, start)
	return out
}
