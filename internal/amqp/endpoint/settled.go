// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"encoding/binary"
	"slices"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// Payloads are the payloads of several deliveries, one behind the other: Bytes[:Ends[0]],
// Bytes[Ends[0]:Ends[1]] and so on.
type Payloads struct {
	Bytes []byte
	Ends  []int
}

// SendSettled sends deliveries of message-format 0 that nobody settles, beginning with the
// payload of number from, and returns how many it has sent: as many as Credit allows. The
// App's Credit is called when it may go on. The payloads are copied. It fails with
// [ErrTooLarge] at one that the peer does not take. A Tracker is told of few of them.
//
// It is Send for links on which very many small deliveries leave: what their frames have
// in common is encoded once.
func (l *Link) SendSettled(ps Payloads, from int) (sent int, err error) {
	most := min(int(l.Credit()), len(ps.Ends)-from)
	if most <= 0 {
		return 0, nil
	}
	s, m := l.session, l.session.m
	head := &m.scratch.settled
	head.init(s.channel, l.handle)
	at, grows := 0, false
	if from > 0 {
		at = ps.Ends[from-1]
	}
	m.out.bytes = slices.Grow(m.out.bytes, ps.Ends[from+most-1]-at+most*len(head.bytes))
	for ; sent < most; sent++ {
		payload := ps.Bytes[at:ps.Ends[from+sent]]
		if l.remote.MaxMessageSize > 0 && uint64(len(payload)) > l.remote.MaxMessageSize {
			err = ErrTooLarge
			break
		}
		at += len(payload)
		if s.outWindow == 0 || len(s.queue) > 0 || len(payload) > m.maxFrame-frame.MaxTransfer {
			// One that has to wait is queued; the link has no credit until it has left.
			var tag [4]byte
			binary.BigEndian.PutUint32(tag[:], l.count+l.queued)
			if err = l.Send(Outgoing{Tag: tag[:], Settled: true, Payload: payload}); err != nil {
				break
			}
			if len(s.queue) > 0 {
				sent++
				break
			}
			continue
		}
		grows = grows || s.sent.full()
		m.out.bytes = head.append(m.out.bytes, s.sent.skip(), payload)
		l.count++
		l.credit--
		s.nextOut++
		s.outWindow--
	}
	if grows {
		s.weigh()
	}
	m.checkOutput()
	return sent, err
}

// settledHead is a frame header and a transfer of a whole settled delivery, with space for
// the delivery-id.
type settledHead struct {
	bytes []byte
	space [frame.MaxTransfer]byte
	id    int // where the delivery-id is
	tag   int // where the delivery-tag is, which is the same
}

func (h *settledHead) init(channel uint16, handle uint32) {
	b := frame.AppendHeader(h.space[:0], frame.TypeAMQP, channel)
	b = codec.AppendDescriptor(b, uint64(frame.CodeTransfer))
	b, list := codec.BeginList(b)
	b = codec.AppendUint(b, handle)
	b = append(b, 0x70, 0, 0, 0, 0)
	h.id = len(b) - 4
	b = append(b, 0xa0, 4, 0, 0, 0, 0)
	h.tag = len(b) - 4
	b = codec.AppendUint(b, 0) // message-format
	b = codec.AppendBool(b, true)
	for range 6 { // more to batchable; all fields are written, see package frame
		b = codec.AppendNull(b)
	}
	h.bytes = codec.EndList(b, list, 11)
}

// append appends a delivery.
func (h *settledHead) append(dst []byte, id uint32, payload []byte) []byte {
	start := len(dst)
	dst = append(dst, h.bytes...)
	b := dst[start:]
	binary.BigEndian.PutUint32(b, uint32(len(h.bytes)+len(payload)))
	binary.BigEndian.PutUint32(b[h.id:], id)
	binary.BigEndian.PutUint32(b[h.tag:], id)
	return append(dst, payload...)
}
