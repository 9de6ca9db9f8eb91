// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/broker"
)

// maxRelayed bounds the addresses that a relay keeps open at a time.
const maxRelayed = 64

// relay is a link to the anonymous terminus: each message says itself where it
// goes. Plain AMQP servers answer many clients over one such link.
type relay struct {
	c    *conn
	link *endpoint.Link
	open map[string]*broker.Sender // by path
}

func (c *conn) attachRelay(l *endpoint.Link) error {
	if !c.grants.proved {
		return c.grants.require(access.Send, "")
	}
	c.attached(l, &relay{c: c, link: l, open: map[string]*broker.Sender{}})
	l.Accept(endpoint.Accept{Credit: senderWindow})
	return nil
}

func (r *relay) transfer(in *endpoint.Incoming) {
	d, size := in.Delivery, len(in.Payload)
	ms, err := unpack(nil, in)
	if err != nil {
		r.answer(d, err)
		return
	}
	to := ms[0].To()
	if isTemporary(to) {
		r.answer(d, r.c.svc.nodes.forward(to, ms))
		return
	}
	s, err := r.sender(to)
	if err == nil {
		err = r.c.admit(size)
	}
	if err != nil {
		r.answer(d, r.c.wireError(to, err))
		return
	}
	s.Send(ms, func(err error) {
		r.c.out.post(event{to: r, kind: eventAnswer, in: d, size: size, err: err})
	})
}

// sender returns the way to addr. When there are too many, all are closed and
// opened again as they are needed: a relay with that many targets is rare.
func (r *relay) sender(addr string) (*broker.Sender, error) {
	path := pathOf(addr)
	if path == "" {
		return nil, endpoint.Errorf(endpoint.CondNotAllowed, "A message to the anonymous terminus needs an address in its 'to' property.")
	}
	if err := r.c.grants.require(access.Send, path); err != nil {
		return nil, err
	}
	if s, ok := r.open[path]; ok {
		return s, nil
	}
	s, err := r.c.svc.broker.OpenSender(path, r.c.sending)
	if err != nil {
		return nil, err
	}
	if len(r.open) >= maxRelayed {
		r.detached()
	}
	r.open[path] = s
	return s, nil
}

func (r *relay) happened(e *event) {
	r.c.pending -= e.size
	if e.err != nil {
		// A sender whose entity is gone must not be used again.
		r.detached()
	}
	r.answer(e.in, e.err)
}

func (r *relay) answer(d endpoint.Delivery, err error) {
	if err != nil {
		r.link.Settle(d, frame.Rejected(r.c.wireError("", err)))
		return
	}
	r.link.Settle(d, frame.Accepted())
}

func (r *relay) credit()                        {}
func (r *relay) disposition(*endpoint.Outcome)  {}
func (r *relay) right() (access.Rights, string) { return 0, "" }

func (r *relay) detached() {
	for path, s := range r.open {
		s.Close()
		delete(r.open, path)
	}
}
