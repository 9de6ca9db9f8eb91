// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/queue"
)

const (
	// maxClerks is how many requests of one connection run at a time.
	maxClerks = 8
	// maxRequests is how many may wait beyond that.
	maxRequests = 1024
	// requestTimeout bounds a request whose sender says nothing.
	requestTimeout = time.Minute
	// reserveTimeout bounds the wait for memory for a large reply.
	reserveTimeout = 5 * time.Second
)

// attachManagement attaches to the node for requests about an entity. Whoever may
// do anything to the entity may attach; each request is checked by itself.
func (c *conn) attachManagement(l *endpoint.Link) error {
	path := pathOf(l.Address())
	if err := c.grants.requireAny(path); err != nil {
		return err
	}
	id, err := c.identify(path)
	if err != nil {
		return err
	}
	if l.Role() == frame.Receiver {
		c.attached(l, &requests{c: c, link: l, node: path, entity: id, serve: c.desk.take})
		l.Accept(endpoint.Accept{Credit: requestWindow, MaxMessageSize: limits.Request})
		return nil
	}
	c.attached(l, &replies{c: c, link: l, node: path, entity: id})
	l.Accept(endpoint.Accept{})
	return nil
}

// desk runs management requests beside the connection, a few at a time, because
// the broker may make them wait. Replies leave in the order of completion.
type desk struct {
	c     *conn
	large *budget.Account // see account; belongs to the connection's context
	// calls are those that are not answered yet; they belong to the connection's
	// context.
	calls map[*call]struct{}

	mu      sync.Mutex
	waiting []*call // guarded by mu
	clerks  int     // goroutines at work; guarded by mu
}

// call is a request on its way through the desk.
type call struct {
	// ctx ends with the connection and, for the reason that review finds, when the
	// request may not be served any more.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	request *request
	op      operation
	reply   reply
	entity  string
	session queue.SessionLock // that the request is about, if the operation is fenced
	// held are the sessions of the entity that the connection holds.
	held    []queue.SessionLock
	c       *conn
	body    codec.Value
	large   bool            // the reply may be
	account *budget.Account // for the reply, until it is encoded
	charge  int64
	beyond  int64             // charged to the connection for a message that is larger than that
	taken   []broker.Delivery // that go back if the reply does not arrive
}

// operation is one entry of the table of operations.
type operation struct {
	needs  access.Rights
	run    func(ctx context.Context, k *call) (codec.Value, error)
	fenced fence
}

// fence says what of an operation is about sessions, which belong to the receiver that
// holds them.
type fence uint8

const (
	unfenced  fence = iota
	bySession       // it acts on the session that it names, if it does
	byToken         // it acts on messages, which may be in sessions
)

// operations are those of the service, by the name in the request.
var operations = map[string]operation{
	"com.microsoft:renew-lock":                 {access.Listen, renewLock, byToken},
	"com.microsoft:update-disposition":         {access.Listen, updateDisposition, byToken},
	"com.microsoft:peek-message":               {access.Listen, peekMessage, unfenced},
	"com.microsoft:receive-by-sequence-number": {access.Listen, receiveBySequenceNumber, bySession},
	"com.microsoft:batch-delete-messages":      {access.Listen, batchDeleteMessages, unfenced},
	"com.microsoft:schedule-message":           {access.Send, scheduleMessage, unfenced},
	"com.microsoft:cancel-scheduled-message":   {access.Send, cancelScheduledMessage, unfenced},
	"com.microsoft:renew-session-lock":         {access.Listen, renewSessionLock, bySession},
	"com.microsoft:get-session-state":          {access.Listen, sessionState, bySession},
	"com.microsoft:set-session-state":          {access.Listen, setSessionState, bySession},
	"com.microsoft:get-message-sessions":       {access.Listen, messageSessions, unfenced},
	"com.microsoft:add-rule":                   {access.Listen, addRule, unfenced},
	"com.microsoft:remove-rule":                {access.Listen, removeRule, unfenced},
	"com.microsoft:enumerate-rules":            {access.Listen, enumerateRules, unfenced},
}

// largeReplies are the operations whose replies hold messages, states or rules.
var largeReplies = map[string]bool{
	"com.microsoft:peek-message":               true,
	"com.microsoft:receive-by-sequence-number": true,
	"com.microsoft:get-session-state":          true,
	"com.microsoft:get-message-sessions":       true,
	"com.microsoft:enumerate-rules":            true,
}

// replyLimit bounds the messages in one reply.
func (c *conn) replyLimit() int { return int(min(limits.ReplyBytes, c.member.Limit()/16)) }

// reserve charges what a large reply may take, before it is made: its parts and the
// whole. While there is no room the request waits, and with it those behind it. It does
// not queue for room in the account: others that need less need not wait behind it.
func (k *call) reserve(ctx context.Context) error {
	if !k.large {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reserveTimeout)
	defer cancel()
	n := 2 * int64(k.c.replyLimit())
	for again := 10 * time.Millisecond; !k.account.TryTake(n); again = min(2*again, time.Second) {
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return endpoint.Errorf(condServerBusy, "%s", errNoMemory.Description)
		}
	}
	k.charge = n
	return nil
}

// reserveFor charges a message that is larger than the whole reply may be otherwise: one
// is sent all the same.
func (k *call) reserveFor(size int) error {
	n := 2 * int64(size-k.c.replyLimit())
	if n <= k.beyond {
		return nil
	}
	if !k.c.member.TakeBeyond(n - k.beyond) {
		return endpoint.Errorf(condServerBusy, "%s", errNoMemory.Description)
	}
	k.beyond = n
	return nil
}

// account returns the account of large replies that are being made. All of a connection
// have a quarter of its memory.
func (d *desk) account() *budget.Account {
	if d.large == nil { // not before the connection has logged in
		d.large = d.c.member.Child(d.c.member.Limit() / 4)
	}
	return d.large
}

func (d *desk) init(c *conn) { d.c, d.calls = c, map[*call]struct{}{} }

// take accepts a request in the connection's context: rights are known there.
func (d *desk) take(r *request) {
	k := &call{request: r, entity: managedEntity(r.from.node), c: d.c}
	if err := d.admit(k); err != nil {
		r.from.answer(r, d.c.failed(k.entity, err))
		return
	}
	k.ctx, k.cancel = context.WithCancelCause(d.c.ctx)
	d.calls[k] = struct{}{}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = append(d.waiting, k)
	if d.clerks < maxClerks {
		d.clerks++
		d.c.helper.Go(d.work)
	}
}

func (d *desk) admit(k *call) error {
	name := k.request.property("operation")
	op, ok := operations[name]
	if !ok {
		return endpoint.Errorf(endpoint.CondNotImplemented, "Operation '%s' is not known here.", name)
	}
	k.op = op
	if err := k.check(); err != nil {
		return err
	}
	k.large, k.account = largeReplies[name], d.account()
	k.body, _ = k.request.message.Value()
	if k.body.Kind() != codec.KindMap {
		return endpoint.Errorf(condArgument, "The body of '%s' must be a map.", name)
	}
	switch id := k.text("session-id"); {
	case op.fenced == byToken:
		k.held = d.c.heldSessions(k.entity)
	case op.fenced == bySession && id != nil:
		if err := limits.CheckText("session id", *id, limits.Name); err != nil {
			return err
		}
		if k.session, ok = d.c.heldSession(k.entity, *id, k.request.property(propAssociatedLink)); !ok {
			return broker.ErrSessionLockLost
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) >= maxRequests {
		return endpoint.Errorf(condServerBusy, "Too many requests wait on this connection.")
	}
	return nil
}

// check reports why the request may not be served, in the connection's context.
func (k *call) check() error {
	if err := k.request.from.check(); err != nil {
		return err
	}
	return k.c.grants.require(k.op.needs, k.request.from.node)
}

// refused is why a request that was admitted may not be served any more.
type refused struct{ error }

func (e refused) Unwrap() error { return e.error }

// review ends the requests that may not be served any more, also those that are being
// served: they may wait for memory, or for the broker.
func (d *desk) review() {
	for k := range d.calls {
		if err := k.check(); err != nil {
			k.cancel(refused{err})
		}
	}
}

// refusal returns what review found, nil for nothing.
func (k *call) refusal() error {
	if e, ok := errors.AsType[refused](context.Cause(k.ctx)); ok {
		return e.error
	}
	return nil
}

// work runs requests until none waits.
func (d *desk) work() {
	for {
		d.mu.Lock()
		if len(d.waiting) == 0 {
			d.clerks--
			d.mu.Unlock()
			return
		}
		k := d.waiting[0]
		d.waiting = d.waiting[1:]
		d.mu.Unlock()
		k.run()
		d.c.out.post(event{to: k})
	}
}

// run does what was asked for, away from the connection.
func (k *call) run() {
	ctx, cancel := context.WithTimeout(k.ctx, k.timeout())
	defer cancel()
	var body codec.Value
	err := k.reserve(ctx)
	if err == nil {
		err = k.still()
	}
	if err == nil {
		body, err = k.op.run(ctx, k)
	}
	if refusal := k.refusal(); err != nil && refusal != nil {
		err = refusal // and not that the context was over
	}
	switch {
	case err != nil:
		broker.Return(k.taken)
		k.reply = k.c.failed(k.entity, err)
	case body.IsNull():
		// Clients ask for exactly this status to see that there is nothing.
		k.reply = reply{status: statusNoContent, text: "No Content", body: dummy}
	default:
		k.reply = reply{status: statusOK, text: "OK", body: body}
		if len(k.taken) > 0 {
			k.reply.lost = func() { broker.Return(k.taken) }
		}
	}
}

// still reports that a request that has waited may not be served any more, or that the
// entity is another by now.
func (k *call) still() error {
	if err := k.refusal(); err != nil {
		return err
	}
	return k.request.from.check()
}

// timeout reads how long the client waits. Its spelling depends on the operation.
func (k *call) timeout() time.Duration {
	for _, name := range []string{"server-timeout", "com.microsoft:server-timeout"} {
		v, ok := k.request.message.Property(name)
		if !ok {
			continue
		}
		if ms, ok := number(v); ok && ms > 0 && ms < requestTimeout.Milliseconds() {
			return time.Duration(ms) * time.Millisecond
		}
	}
	return requestTimeout
}

// happened answers, back in the connection's context. What the client may not see any
// more it is not shown.
func (k *call) happened(*event) {
	delete(k.c.desk.calls, k)
	if err := k.refusal(); err != nil && k.large {
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
