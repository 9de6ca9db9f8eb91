// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"errors"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
)

const (
	// requestWindow bounds the requests of one link that are being served.
	requestWindow = 100
	// bulkyReply is how many bytes a reply has that waits until the peer reads.
	bulkyReply = 64 << 10
	// replyLinkCost is what a link for replies takes beside a link: the names by which it is
	// found.
	replyLinkCost = 1 << 10
	// partingCost is what a reply takes beside its bytes while it waits.
	partingCost = 256
)

// requests is a link on which the peer sends requests to a node.
type requests struct {
	c    *Conn
	link *endpoint.Link
	node string // path of the node
	// entity is the ID of the entity that requests are about; zero is none.
	entity uint64
	serve  func(*request)
	done   func() // runs when the link is gone; may be nil
}

// replies is a link on which the peer receives the answers of a node.
type replies struct {
	c       *Conn
	link    *endpoint.Link
	node    string
	entity  uint64    // of the requests; zero is none
	backlog []parting // waiting for credit, oldest first
	next    uint64    // makes delivery tags
	done    func()
	left    func(charge int64) // gives a charge back; nil for one of the connection's own
	tokens  bool               // of $cbs
	cost    int64              // that it is charged with
	// leaving has what runs if replies never leave that the transport has not taken
	// yet, by their number.
	leaving map[uint64]func()
}

// parting is a payload that waits to leave.
type parting struct {
	payload []byte
	lost    func() // runs if it never leaves; may be nil
	held    int64  // bytes that lost keeps
	charge  int64  // while it waits for credit
}

// isLost says that p never leaves.
func (p *parting) isLost() {
	if p.lost != nil {
		p.lost()
	}
}

// request is one request, with bytes of its own.
type request struct {
	from     *requests
	delivery endpoint.Delivery
	message  *message.Message
	charge   int64
}

// requestCost is what a request of size bytes takes until it is answered: its bytes,
// and what is read from them.
func requestCost(size int) int64 { return 3*int64(size) + 2<<10 }

// reply is the answer to a request.
type reply struct {
	wire.Reply
	lost func() // runs if it never leaves; may be nil
	held int64  // bytes that lost keeps
}

func (q *requests) Transfer(in *endpoint.Incoming) {
	charge := requestCost(len(in.Payload))
	if !q.c.mem.Take(charge) {
		q.link.Settle(in.Delivery, frame.Rejected(ErrNoMemory))
		return
	}
	ms, err := q.c.Unpack(nil, in, q.c.sending.Key, wire.Messages(in.Arriving()))
	if err == nil {
		err = checkIDs(ms[0])
	}
	if err != nil {
		q.c.mem.Release(charge)
		q.link.Settle(in.Delivery, frame.Rejected(q.c.WireError(q.node, err)))
		return
	}
	q.serve(&request{from: q, delivery: in.Delivery, message: ms[0], charge: charge})
}

// checkIDs refuses a request with ids that are too long: they are in its reply as well.
func checkIDs(m *message.Message) error {
	for _, id := range []codec.Value{m.MessageID(), m.CorrelationID()} {
		b, _ := id.Bytes()
		if err := limits.CheckBytes("id of the request", len(b), 4*limits.Name); err != nil {
			return err
		}
	}
	return limits.CheckBytes("reply-to of the request", len(m.ReplyTo()), limits.LinkAddress)
}

// property returns an application property of the request as text.
func (r *request) property(name string) string {
	v, _ := r.message.Property(name)
	s, _ := v.Str()
	return s
}

// answer settles the request, for which the Go SDK waits, and sends the reply behind
// that: uAMQP forgets a request when its reply comes, and crashes on a disposition for
// a request that it has forgotten.
func (q *requests) answer(r *request, a reply) {
	q.link.SettleNow(r.delivery, frame.Accepted())
	q.c.mem.Release(r.charge)
	r.charge = 0
	err := q.reply(r, a)
	if err != nil && a.lost != nil {
		a.lost()
	}
	if errors.Is(err, endpoint.ErrTooLarge) {
		err = q.reply(r, q.c.failed(wire.ManagedEntity(q.node), err))
	}
	if err != nil { // its reader may have left
		q.c.log.Debug("no link for a reply", "node", q.node, "err", err)
	}
}

// errNoReplyLink is for the log.
var errNoReplyLink = errors.New("azure: no such link")

// reply sends a reply, or reports why it cannot.
func (q *requests) reply(r *request, a reply) error {
	payload := a.Encode(r.message)
	if wire.IsDynamicNode(r.message.ReplyTo()) {
		m, err := message.Parse(payload)
		if err != nil {
			return err
		}
		// $cbs answers unauthenticated peers too, which may not send there.
		if err := q.c.grants.requireSome(access.Send, wire.PathOf(r.message.ReplyTo())); err != nil {
			return err
		}
		return q.c.svc.nodes.forward(r.message.ReplyTo(), []*message.Message{m}, a.lost)
	}
	to := q.c.replyLinks.find(q.node, q.link.Session(), r.message.ReplyTo())
	switch {
	case to == nil:
		return errNoReplyLink
	case !to.takes(len(payload)):
		return endpoint.ErrTooLarge
	}
	to.send(parting{payload: payload, lost: a.lost, held: a.held})
	return nil
}

func (to *replies) target() string {
	if t := to.link.Remote().Target; t != nil {
		return t.Address
	}
	return ""
}

// takes reports whether a message of size bytes is not too large for the peer. It may be
// called from any goroutine.
func (to *replies) takes(size int) bool {
	most := to.link.Remote().MaxMessageSize
	return most == 0 || uint64(size) <= most
}

// send sends a reply, settled, as all these receivers ask for. One that cannot leave at
// once is charged; a peer that has too many of them waiting loses the link, or, if it
// is that of its tokens, the oldest of them.
func (to *replies) send(p parting) {
	if to.tokens && len(to.backlog) >= limits.TokenReplies {
		to.drop()
	}
	p.charge = int64(cap(p.payload)) + p.held + partingCost
	for !to.c.mem.Take(p.charge) {
		if !to.tokens || len(to.backlog) == 0 {
			p.charge = 0
			break
		}
		to.drop()
	}
	to.backlog = append(to.backlog, p)
	to.Credit()
	switch {
	case len(to.backlog) > limits.Replies, len(to.backlog) > 0 && p.charge == 0 && !to.tokens:
		to.link.Detach(endpoint.Errorf(endpoint.CondResourceLimitExceeded, "Too many replies wait for credit."))
	case len(to.backlog) > 0 && p.charge == 0:
		to.backlog = to.backlog[:len(to.backlog)-1] // it was the only one
	}
}

// drop forgets the oldest reply.
func (to *replies) drop() {
	to.giveBack(to.backlog[0].charge)
	to.backlog[0] = parting{} // not to keep what has left
	to.backlog = to.backlog[1:]
}

// giveBack gives the charge of a reply back that does not wait any more.
func (to *replies) giveBack(n int64) {
	if to.left != nil {
		to.left(n)
		return
	}
	to.c.mem.Release(n)
}

func (to *replies) Credit() {
	if to.sendBacklog() {
		to.link.DrainDone() // what waits still has no credit
	}
}

// sendBacklog sends what waits, as far as there is credit. It reports false if there is
// some, and the peer has to read first.
func (to *replies) sendBacklog() bool {
	for len(to.backlog) > 0 {
		p := to.backlog[0]
		// A large one would be there twice until the peer has read. Few wait for the window
		// of the session, however much credit there is: each flow looks at all of those.
		if len(p.payload) > bulkyReply && to.link.Wait() || to.link.WaitForWindow() {
			return to.link.Granted() == 0
		}
		to.next++
		if p.lost != nil {
			if to.leaving == nil {
				to.leaving = map[uint64]func(){}
			}
			to.leaving[to.next] = p.lost // before Send, which may tell at once
		}
		o := endpoint.Outgoing{Tag: wire.Tag(to.next), Settled: true, Payload: p.payload, Ref: to.next}
		if to.link.Send(o) != nil {
			delete(to.leaving, to.next)
			return true
		}
		to.drop()
	}
	to.backlog = nil
	return true
}

// sent and unsent implement tracked.
func (to *replies) Sent(ref uint64) { delete(to.leaving, ref) }

func (to *replies) Unsent(ref uint64) {
	if lost, ok := to.leaving[ref]; ok {
		delete(to.leaving, ref)
		lost()
	}
}

// failed is the reply that tells of an error.
func (c *Conn) failed(addr string, err error) reply {
	f := c.failureOf(addr, err)
	return reply{Reply: wire.Reply{Status: f.Status, Text: f.Description, Condition: f.Condition, Body: wire.Done}}
}

func (q *requests) Credit()                       {}
func (q *requests) Disposition(*endpoint.Outcome) {}

// ofEntity returns the path of a node that belongs to an entity.
func ofEntity(id uint64, path string) []string {
	if id == 0 {
		return nil
	}
	return []string{path}
}

func (q *requests) Paths() []string { return []string{q.node} }

// check looks at the entity alone: every request is checked by itself.
func (q *requests) Check() error {
	if q.entity == 0 {
		return nil
	}
	return q.c.IsStill(q.node, q.entity)
}

func (q *requests) Detached() {
	if q.done != nil {
		q.done()
	}
}

func (to *replies) Transfer(*endpoint.Incoming) {}
func (to *replies) Disposition(o *endpoint.Outcome) {
	for _, d := range o.Deliveries {
		to.link.SettleOut(d.ID, frame.Accepted())
	}
}
func (to *replies) Paths() []string { return ofEntity(to.entity, to.node) }

func (to *replies) Check() error {
	if to.entity == 0 {
		return nil
	}
	return to.c.IsStill(to.node, to.entity)
}

func (to *replies) Detached() {
	for _, p := range to.backlog {
		to.giveBack(p.charge)
		p.isLost()
	}
	to.backlog = nil
	to.c.mem.Release(to.cost)
	if to.done != nil {
		to.done()
	}
}
