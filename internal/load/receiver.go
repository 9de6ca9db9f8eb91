// SPDX-License-Identifier: Apache-2.0

package load

import (
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/objective"
)

// receiver is a connection that receives and completes.
type receiver struct {
	*conn
	run    *run
	credit uint32 // link credit

	left    uint32 // credit the broker has left
	count   uint32 // deliveries received
	partial []byte // the incomplete delivery, if it consists of several frames
	first   uint32 // oldest delivery that is to be settled
	last    uint32
	settle  bool   // there is one
	known   uint64 // messages of this run among them
	foreign uint64 // messages of other runs

	latency objective.Histogram // from sending to receipt
	urgent  func(time.Duration) // takes the latency of urgent messages; nil without any
}

func (r *run) newReceiver(c *conn, credit int) (*receiver, error) {
	in := &receiver{conn: c, run: r, credit: uint32(credit)}
	c.send(&frame.Attach{
		Name: r.linkName("receiver"), Handle: handle, Role: frame.Receiver,
		SenderSettleMode: frame.SenderUnsettled,
		Source:           &frame.Source{Address: r.cfg.Queue},
		Target:           &frame.Target{Address: r.cfg.Queue},
	})
	if err := c.flush(); err != nil {
		return nil, err
	}
	return in, c.awaitAttach()
}

// work receives until the connection's context ends, which is why it returns.
func (in *receiver) work() error { return in.loop(in.handle, in.topUp) }

// topUp grants credit when half of it is used up.
func (in *receiver) topUp() {
	if in.left > in.credit/2 {
		return
	}
	in.left = in.credit
	in.grant(handle, in.count, in.credit)
}

// handle takes what the broker sent and completes it, a whole range at once.
func (in *receiver) handle() error {
	now := in.run.since()
	return in.frames(func(fields *codec.Reader, payload []byte) { in.transfer(fields, payload, now) }, in.complete)
}

func (in *receiver) transfer(fields *codec.Reader, payload []byte, now time.Duration) {
	var t frame.Transfer
	if t.Decode(fields); fields.Err() != nil {
		return
	}
	in.nextIn++
	if t.HasDeliveryID && len(in.partial) == 0 {
		in.begin(t.DeliveryID)
	}
	if t.More || len(in.partial) > 0 {
		in.partial = append(in.partial, payload...)
		if t.More {
			return
		}
		payload = in.partial
	}
	k, sent, ok := readBody(payload, in.run.number, in.run.cfg.Size)
	in.partial = in.partial[:0]
	switch {
	case !ok:
		in.foreign++
		return
	case k == kindUrgent && in.urgent != nil:
		in.urgent(now - sent)
	case k == kindPlain:
		in.latency.Record(now - sent)
	}
	in.known++
}

// begin records a delivery that is to be completed. Ids of one session rise
// without gaps, as it has one link only.
func (in *receiver) begin(id uint32) {
	if !in.settle {
		in.first, in.settle = id, true
	}
	in.last = id
	in.count++
	in.left--
}

// complete settles the received deliveries, except an incomplete one.
func (in *receiver) complete() {
	if !in.settle {
		return
	}
	last := in.last
	if len(in.partial) > 0 {
		if last == in.first {
			return
		}
		last--
	}
	in.send(&frame.Disposition{Role: frame.Receiver, First: in.first, Last: last, Settled: true, State: frame.Accepted()})
	in.settle, in.first = last != in.last, in.last
	in.run.out.Add(in.known)
	in.known = 0
}

func (in *receiver) measured() (*objective.Histogram, uint64) { return &in.latency, in.foreign }
