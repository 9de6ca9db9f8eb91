// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/azure/wire"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/limits"
)

const (
	// maxWorkers is how many requests of one connection run at a time.
	maxWorkers = 8
	// maxRequests is how many may wait beyond that.
	maxRequests = 1024
	// requestTimeout bounds a request whose sender says nothing.
	requestTimeout = time.Minute
	// reserveTimeout bounds the wait for memory for a large reply.
	reserveTimeout = 5 * time.Second
)

// attachManagement attaches to the node for requests about an entity, or about the
// namespace. A peer with any right to the entity may attach; each request is checked
// by itself.
func (c *Conn) attachManagement(l *endpoint.Link) error {
	path := wire.PathOf(l.Address())
	if err := c.mayManage(path); err != nil {
		return err
	}
	id, err := c.identify(path)
	if err != nil {
		return err
	}
	if l.Role() == frame.Receiver {
		c.Attached(l, &requests{c: c, link: l, node: path, entity: id, serve: c.pool.take})
		l.Accept(endpoint.Accept{Credit: requestWindow, MaxMessageSize: limits.Request})
		return nil
	}
	if !c.mem.Take(replyLinkCost) {
		return ErrNoMemory
	}
	c.Attached(l, &replies{c: c, link: l, node: path, entity: id, cost: replyLinkCost})
	l.Accept(endpoint.Accept{})
	return nil
}

// mayManage asks for any right at the entity of a management node. Clients of Event
// Hubs have a token for a hub and attach to the node of the namespace.
func (c *Conn) mayManage(path string) error {
	if wire.ManagedEntity(path) == "" && slices.ContainsFunc(c.svc.personalities, Personality.ServesNamespace) {
		return c.grants.requireSome(access.Listen, path)
	}
	return c.grants.requireAny(path)
}

// requestPool runs management requests beside the connection, a few at a time, because
// the broker may make them wait. Replies leave in the order of completion.
type requestPool struct {
	c     *Conn
	large *budget.Account // see account; belongs to the connection's context
	// calls are those that are not answered yet; they belong to the connection's
	// context.
	calls map[*Call]struct{}

	mu      sync.Mutex
	waiting []*Call // guarded by mu
	workers int     // goroutines at work; guarded by mu
}

// Call is a request on its way through the pool.
type Call struct {
	// ctx ends with the connection and, for the reason that review finds, when the
	// request may not be served any more.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	request *request
	op      Operation
	needs   access.Rights // the right that the request needs
	run     Run
	reply   reply
	node    string // the management node of entity
	entity  string // path
	id      uint64 // of entity, if the request named it; else the link's counts
	c       *Conn
	body    codec.Value
	account *budget.Account // for the reply, until it is encoded
	charge  int64
	beyond  int64  // charged to the connection for a message that is larger than that
	lost    func() // runs if the reply does not arrive; may be nil
	held    int64  // bytes that lost keeps
	encoded []byte // the reply, if it was written in one piece
}

// Conn returns the connection that the request came on.
func (k *Call) Conn() *Conn { return k.c }

// Entity returns the path of the entity that the request is about; empty for the
// namespace.
func (k *Call) Entity() string { return k.entity }

// Property returns an application property of the request as text.
func (k *Call) Property(name string) string { return k.request.property(name) }

// Body returns the body of the request: a map, unless the operation accepts others.
func (k *Call) Body() codec.Value { return k.body }

// OnLost has fn run if the requester does not get the reply: because the operation
// fails, or because its link or connection ends first.
// The bytes that fn keeps are charged as long as the reply waits.
func (k *Call) OnLost(fn func(), keeps int64) { k.lost, k.held = fn, keeps }

// Hold charges bytes that the request makes the connection keep until it is answered, and
// reports whether there was memory for them. It is called in the connection's context, by
// Operation.Begin.
func (k *Call) Hold(n int64) bool {
	if !k.c.mem.Take(n) {
		return false
	}
	k.request.charge += n
	return true
}

// BeginReply returns the beginning of a reply, to which the caller appends a body of at
// most space bytes: a map. Bodies that are large are written so, because each value that
// is made from others copies them.
func (k *Call) BeginReply(space int) []byte {
	return slices.Grow(okay.AppendHead(nil, k.request.message), space)
}

// EndReply makes b the reply, which began with BeginReply. What it returns is for [Run] to
// return.
func (k *Call) EndReply(b []byte) codec.Value {
	k.encoded = b
	return codec.Value{}
}

// okay is the reply to a request that was done, without its body.
var okay = wire.Reply{Status: condition.StatusOK, Text: "OK"}

// ReplyLimit bounds the messages in one reply.
func (k *Call) ReplyLimit() int { return k.c.replyLimit() }

func (c *Conn) replyLimit() int { return int(min(limits.ReplyBytes, c.member.Limit()/16)) }

// reserve charges what a large reply may take, before it is made: the reply, and what is
// read for it, or kept in case that it is lost. While there is no memory the request
// waits, and with it those behind it. It does not queue for memory in the account: others
// that need less need not wait behind it.
func (k *Call) reserve(ctx context.Context) error {
	if !k.op.LargeReply {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reserveTimeout)
	defer cancel()
	n := 2 * int64(k.c.replyLimit())
	for again := 10 * time.Millisecond; !k.account.TryTake(n); again = min(2*again, time.Second) {
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return endpoint.Errorf(names.ServerBusy, "%s", ErrNoMemory.Description)
		}
	}
	k.charge = n
	return nil
}

// ReserveFor charges a body of a reply that is larger than it may be otherwise: one
// message is sent whatever its size.
func (k *Call) ReserveFor(size int) error {
	n := 2 * int64(size-k.c.replyLimit())
	if n <= k.beyond {
		return nil
	}
	if !k.c.member.TakeBeyond(n - k.beyond) {
		return endpoint.Errorf(names.ServerBusy, "%s", ErrNoMemory.Description)
	}
	k.beyond = n
	return nil
}

// account returns the account of large replies that are being made. All of a connection
// have a quarter of its memory.
func (p *requestPool) account() *budget.Account {
	if p.large == nil { // not before the connection has logged in
		p.large = p.c.member.Child(p.c.member.Limit() / 4)
	}
	return p.large
}

func (p *requestPool) init(c *Conn) { p.c, p.calls = c, map[*Call]struct{}{} }

// take accepts a request in the connection's context: rights are known there.
func (p *requestPool) take(r *request) {
	k := &Call{request: r, node: r.from.node, entity: wire.ManagedEntity(r.from.node), c: p.c}
	if err := p.admit(k); err != nil {
		r.from.answer(r, p.c.failed(k.entity, err))
		return
	}
	k.ctx, k.cancel = context.WithCancelCause(p.c.ctx)
	p.calls[k] = struct{}{}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, k)
	if p.workers < maxWorkers {
		p.workers++
		p.c.helper.Go(p.work)
	}
}

func (p *requestPool) admit(k *Call) error {
	name := k.request.property(names.Operation)
	op, ok := p.c.operation(k.entity, name)
	if !ok {
		return endpoint.Errorf(endpoint.CondNotImplemented, "Operation '%s' is not known here.", name)
	}
	k.op, k.needs, k.account = op, op.Needs, p.account()
	k.body, _ = k.request.message.Value()
	if k.entity == "" && op.Entity != nil {
		if err := k.aim(op.Entity(k)); err != nil {
			return err
		}
	}
	if err := k.check(); err != nil {
		return err
	}
	if !op.AnyBody && k.body.Kind() != codec.KindMap {
		return endpoint.Errorf(names.ArgumentError, "The body of '%s' must be a map.", name)
	}
	var err error
	if k.run, err = op.Begin(k); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) >= maxRequests {
		return endpoint.Errorf(names.ServerBusy, "Too many requests wait on this connection.")
	}
	return nil
}

// operation returns an operation of the personality that has the entity; for the
// namespace, of the first that has one of that name.
func (c *Conn) operation(entity, name string) (Operation, bool) {
	if entity != "" {
		return c.linksAt(entity).Operation(name)
	}
	for i := range c.svc.personalities {
		if op, ok := c.linksOf(i).Operation(name); ok {
			return op, true
		}
	}
	return Operation{}, false
}

// aim makes an entity that the request names the one it is about. The right to it is
// asked for first: only a peer that has it may learn whether there is such an entity.
func (k *Call) aim(addr string) error {
	if k.entity = wire.PathOf(addr); k.entity == "" {
		return nil
	}
	k.node = k.entity + wire.ManagementSuffix
	if err := k.c.grants.require(k.needs, k.node); err != nil {
		return err
	}
	var err error
	k.id, err = k.c.identify(k.entity)
	return err
}

// check reports why the request may not be served, in the connection's context.
func (k *Call) check() error {
	if err := k.isStill(); err != nil {
		return err
	}
	return k.c.grants.require(k.needs, k.node)
}

// Require asks for one more right to the entity, in the connection's context: what the
// request is about decides. It is asked for again when rights change.
func (k *Call) Require(want access.Rights) error {
	k.needs |= want
	return k.c.grants.require(k.needs, k.node)
}

// isStill reports that the entity is another than when the link was attached, or the
// request came.
func (k *Call) isStill() error {
	if k.id != 0 {
		return k.c.IsStill(k.entity, k.id)
	}
	return k.request.from.Check()
}

// refused is why a request that was admitted may not be served any more.
type refused struct{ error }

func (e refused) Unwrap() error { return e.error }

// review ends the requests that may not be served any more, also those that are being
// served: they may wait for memory, or for the broker.
func (p *requestPool) review() {
	for k := range p.calls {
		if err := k.check(); err != nil {
			k.cancel(refused{err})
		}
	}
}

// refusal returns what review found, nil for nothing.
func (k *Call) refusal() error {
	if e, ok := errors.AsType[refused](context.Cause(k.ctx)); ok {
		return e.error
	}
	return nil
}

// work runs requests until none waits.
func (p *requestPool) work() {
	for {
		p.mu.Lock()
		if len(p.waiting) == 0 {
			p.workers--
			p.mu.Unlock()
			return
		}
		k := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.mu.Unlock()
		k.perform()
		p.c.Post(Event{To: k})
	}
}

// perform does what was asked for, away from the connection.
func (k *Call) perform() {
	ctx, cancel := context.WithTimeout(k.ctx, k.timeout())
	defer cancel()
	var body codec.Value
	err := k.reserve(ctx)
	if err == nil {
		err = k.Still()
	}
	if err == nil {
		body, err = k.run(ctx)
	}
	if refusal := k.refusal(); err != nil && refusal != nil {
		err = refusal // and not that the context was over
	}
	switch {
	case err != nil:
		if k.lost != nil {
			k.lost()
		}
		k.reply = k.c.failed(k.entity, err)
	case body.IsNull() && k.encoded == nil:
		// Clients ask for exactly this status to see that there is nothing.
		k.reply = reply{Reply: wire.Reply{Status: condition.StatusNoContent, Text: "No Content", Body: wire.Done}}
	default:
		r := okay
		r.Body, r.Encoded = body, k.encoded
		k.reply = reply{r, k.lost, k.held}
	}
}

// Still reports that a request that has waited may not be served any more, or that the
// entity is another by now.
func (k *Call) Still() error {
	if err := k.refusal(); err != nil {
		return err
	}
	return k.isStill()
}

// timeout reads how long the client waits. Its spelling depends on the operation.
func (k *Call) timeout() time.Duration {
	for _, name := range []string{"server-timeout", names.ServerTimeout} {
		v, ok := k.request.message.Property(name)
		if !ok {
			continue
		}
		if ms, ok := wire.Integer(v); ok && ms > 0 && ms < requestTimeout.Milliseconds() {
			return time.Duration(ms) * time.Millisecond
		}
	}
	return requestTimeout
}

// Handle answers, back in the connection's context. What the client may not see any
// more it is not shown.
func (k *Call) Handle(*Event) {
	delete(k.c.pool.calls, k)
	if err := k.refusal(); err != nil && k.op.LargeReply {
		if k.reply.lost != nil {
			k.reply.lost()
		}
		k.reply = k.c.failed(k.entity, err)
	}
	k.cancel(nil)
	k.request.from.answer(k.request, k.reply)
	if k.charge > 0 {
		k.account.Release(k.charge)
	}
	k.c.member.Release(k.beyond)
}
