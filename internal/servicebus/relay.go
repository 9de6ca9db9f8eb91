// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/message"
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
	if err := c.grants.requireSome(access.Send, ""); err != nil {
		return err
	}
	c.attached(l, &relay{c: c, link: l, open: map[string]*broker.Sender{}})
	l.Accept(endpoint.Accept{Credit: senderWindow})
	return nil
}

func (r *relay) transfer(in *endpoint.Incoming) {
	d, charge := in.Delivery, r.c.unsynced.take()
	s, ms, err := r.accept(in)
	if err != nil || s == nil {
		r.c.unsynced.account.Release(charge)
		r.answer(d, err)
		return
	}
	s.Send(ms, func(err error) {
		r.c.out.post(event{to: r, kind: eventAnswer, in: d, charge: charge, err: err})
	})
}

// accept returns the messages of a delivery and the way to where they go; no way if
// they are there already, at a temporary node.
func (r *relay) accept(in *endpoint.Incoming) (*broker.Sender, []*message.Message, error) {
	ms, err := unpack(nil, in)
	if err != nil {
		return nil, nil, err
	}
	to := ms[0].To()
	if isTemporary(to) {
		return nil, nil, r.c.svc.nodes.forward(to, ms)
	}
	s, err := r.sender(to)
	if err != nil {
		return nil, nil, r.c.wireError(to, err)
	}
	return s, ms, nil
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
	r.c.unsynced.answer(e.charge)
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

func (r *relay) credit()                       {}
func (r *relay) disposition(*endpoint.Outcome) {}
func (r *relay) check() error                  { return r.c.grants.requireSome(access.Send, "") } // each message is checked by itself
func (r *relay) paths() []string               { return nil }

func (r *relay) detached() {
	for path, s := range r.open {
		s.Close()
		delete(r.open, path)
	}
}
