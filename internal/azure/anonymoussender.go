// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"strings"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
)

const (
	// maxAnonymousTargets bounds the addresses that an anonymous sender keeps open at a time.
	maxAnonymousTargets = 64
	// targetCost is what an open address takes beside its name: the sender, and its place in
	// the table.
	targetCost = 512
)

// anonymousSender is a link to the anonymous terminus: each message says itself where it
// goes. Plain AMQP servers answer many clients over one such link.
type anonymousSender struct {
	c    *Conn
	link *endpoint.Link
	open map[string]Sender // by path; each is charged
}

func (c *Conn) attachAnonymousSender(l *endpoint.Link) error {
	if err := c.grants.requireSome(access.Send, ""); err != nil {
		return err
	}
	c.Attached(l, &anonymousSender{c: c, link: l, open: map[string]Sender{}})
	l.Accept(endpoint.Accept{Credit: SenderCredit})
	return nil
}

func (r *anonymousSender) Transfer(in *endpoint.Incoming) {
	d, charge := in.Delivery, r.c.TakeCharge()
	s, ms, err := r.accept(in)
	if err != nil || s == nil {
		r.c.Unsynced().Release(charge)
		r.answer(d, err)
		return
	}
	s.Send(ms, func(err error) {
		r.c.Post(Event{To: r, In: d, Charge: charge, Err: err})
	})
}

// accept returns the messages of a delivery and the way to where they go; no way if
// they are there already, at a dynamic node.
func (r *anonymousSender) accept(in *endpoint.Incoming) (Sender, []*message.Message, error) {
	ms, err := r.c.Unpack(nil, in, r.c.sending.Key, r.c.arrived)
	if err != nil {
		return nil, nil, err
	}
	to := ms[0].To()
	if wire.IsDynamicNode(to) {
		return nil, nil, r.c.svc.nodes.forward(to, ms, nil)
	}
	s, err := r.sender(to)
	if err != nil {
		return nil, nil, r.c.WireError(to, err)
	}
	return s, ms, nil
}

// sender returns the way to addr. When there are too many, all are closed and
// opened again as they are needed: a link with that many targets is rare.
func (r *anonymousSender) sender(addr string) (Sender, error) {
	path := wire.PathOf(addr)
	if path == "" {
		return nil, endpoint.Errorf(endpoint.CondNotAllowed, "A message to the anonymous terminus needs an address in its 'to' property.")
	}
	if err := r.c.grants.require(access.Send, path); err != nil {
		return nil, err
	}
	// As the message has it: the name of a publisher is a key, in which case counts.
	spelled := path
	if p, err := entity.ParsePath(addr); err == nil {
		spelled = p.String()
	}
	if s, ok := r.open[spelled]; ok {
		return s, nil
	}
	spelled = strings.Clone(spelled) // not to keep the message
	s, err := r.c.linksAt(path).OpenSender(spelled)
	if err != nil {
		return nil, err
	}
	if !r.charge(spelled) {
		s.Close()
		return nil, ErrNoMemory
	}
	r.open[spelled] = s
	return s, nil
}

// charge takes memory for one more address, in place of the others if there is no more of it.
func (r *anonymousSender) charge(path string) bool {
	n := targetCost + int64(len(path))
	if len(r.open) < maxAnonymousTargets && r.c.mem.Take(n) {
		return true
	}
	r.closeAll()
	return r.c.mem.Take(n)
}

// closeAll closes what is open.
func (r *anonymousSender) closeAll() {
	for path, s := range r.open {
		s.Close()
		r.c.mem.Release(targetCost + int64(len(path)))
	}
	r.open = map[string]Sender{} // a table that was large stays large
}

// Handle answers a delivery, when the broker has made it durable.
func (r *anonymousSender) Handle(e *Event) {
	if e.Err != nil {
		// A sender whose entity is gone must not be used again.
		r.closeAll()
	}
	r.answer(e.In, e.Err)
}

func (r *anonymousSender) answer(d endpoint.Delivery, err error) {
	if err != nil {
		r.link.Settle(d, frame.Rejected(r.c.WireError("", err)))
		return
	}
	r.link.Settle(d, frame.Accepted())
}

// Messages implements Storer.
func (r *anonymousSender) Messages(d endpoint.Arriving) int { return wire.Messages(d) }

func (r *anonymousSender) Credit()                       {}
func (r *anonymousSender) Disposition(*endpoint.Outcome) {}
func (r *anonymousSender) Check() error                  { return r.c.grants.requireSome(access.Send, "") } // each message is checked by itself
func (r *anonymousSender) Paths() []string               { return nil }

func (r *anonymousSender) Detached() { r.closeAll() }
