// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/message"
)

// The toy personality has counters. It shows that a kind of entity can be added
// without a change to package azure: who sends to counter/a adds one for each message,
// who receives gets the sum, and requests to counter/a/$management, or to $management
// with the counter's name, read or reset it. What it does in small is what Event Hubs
// needs: links that are told things in their properties and ask for things in their
// filters, readers of which a later one with a higher epoch takes the place, operations
// of the namespace, and errors of its own.

var (
	errOverflow = errors.New("toy: counter is full")
	errStolen   = errors.New("toy: stolen")
)

type counters struct {
	mu   sync.Mutex
	byID []*counter // guarded by mu; index + 1 is the ID
}

type counter struct {
	path   string
	id     uint64
	sum    int64   // guarded by mu
	reader *reader // the one that has the counter; guarded by mu
}

const maxSum = 3

func newCounters(names ...string) *counters {
	cs := &counters{}
	for i, name := range names {
		cs.byID = append(cs.byID, &counter{path: name, id: uint64(i + 1)})
	}
	return cs
}

func (cs *counters) find(path string) *counter {
	for _, c := range cs.byID {
		if c.path == path {
			return c
		}
	}
	return nil
}

func (cs *counters) add(c *counter, n int64) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.sum+n > maxSum {
		return fmt.Errorf("%w: %s", errOverflow, c.path)
	}
	c.sum += n
	return nil
}

func (cs *counters) read(c *counter) int64 {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return c.sum
}

func (cs *counters) Find(path string) (uint64, error) {
	if c := cs.find(path); c != nil {
		return c.id, nil
	}
	return 0, broker.ErrNotFound
}

func (cs *counters) ServesNamespace() bool { return true }

func (cs *counters) Conditions() []condition.Condition {
	return []condition.Condition{
		{Err: errOverflow, Name: "toy:overflow", Status: 418, Text: "The counter '{entity}' is full."},
		{Err: errStolen, Name: endpoint.CondStolen, Status: condition.StatusConflict, Text: "A reader with a higher epoch has '{entity}'."},
		{Name: "toy:odd", Status: 417},
	}
}

func (cs *counters) Open(c *azure.Conn) azure.Links { return &counterLinks{Conn: c, all: cs} }

type counterLinks struct {
	*azure.Conn
	all *counters
}

func (ls *counterLinks) Stop()   {}
func (ls *counterLinks) Closed() {}

func (ls *counterLinks) Attach(l *endpoint.Link, path string) error {
	c := ls.all.find(path)
	if l.Remote().Role == frame.Sender {
		if err := ls.Require(access.Send, path); err != nil {
			return err
		}
		ls.Attached(l, &adder{ls: ls, link: l, counter: c})
		properties := wire.Result("toy:most", codec.Long(maxSum))
		l.Accept(endpoint.Accept{Credit: azure.SenderCredit, Properties: codec.AppendValue(nil, properties)})
		return nil
	}
	if err := ls.Require(access.Listen, path); err != nil {
		return err
	}
	r := &reader{ls: ls, link: l, counter: c}
	if v, ok := wire.Lookup(l.Remote().Properties, "toy:epoch"); ok {
		r.epoch, _ = wire.Integer(v)
	}
	if v, ok := wire.Lookup(l.Remote().Source.Filter, "toy:plus"); ok {
		if _, inner, ok := v.Described(); ok {
			v = inner
		}
		r.plus, _ = wire.Integer(v)
	}
	if err := r.take(); err != nil {
		return err
	}
	ls.Attached(l, r)
	l.Accept(endpoint.Accept{})
	return nil
}

func (ls *counterLinks) OpenSender(path string) (azure.Sender, error) {
	return counterSender{ls.all, ls.all.find(path)}, nil
}

type counterSender struct {
	all *counters
	c   *counter
}

func (s counterSender) Send(ms []*message.Message, done func(error)) {
	done(s.all.add(s.c, int64(len(ms))))
}
func (s counterSender) Close() {}

func (ls *counterLinks) Operation(name string) (azure.Operation, bool) {
	op := azure.Operation{
		AnyBody: true,
		Entity:  func(k *azure.Call) string { return k.Property("name") },
	}
	switch name {
	case "READ":
		op.Needs = access.Listen
		op.Begin = func(k *azure.Call) (azure.Run, error) {
			c := ls.all.find(k.Entity())
			if c == nil {
				return nil, azure.BadArgument("name", "that of a counter")
			}
			return func(context.Context) (codec.Value, error) {
				return wire.Result("sum", codec.Long(ls.all.read(c))), nil
			}, nil
		}
	case "ADD":
		op.Needs = access.Send
		op.Begin = func(k *azure.Call) (azure.Run, error) {
			n, err := k.Count("n", 100)
			if err != nil {
				return nil, err
			}
			if n%2 == 1 {
				return nil, endpoint.Errorf("toy:odd", "Odd numbers are not added.")
			}
			c := ls.all.find(k.Entity())
			return func(context.Context) (codec.Value, error) { return wire.Done, ls.all.add(c, int64(n)) }, nil
		}
	default:
		return azure.Operation{}, false
	}
	return op, true
}

// adder is a link that adds.
type adder struct {
	ls      *counterLinks
	link    *endpoint.Link
	counter *counter
}

func (a *adder) Messages(endpoint.Arriving) int { return 1 }

func (a *adder) Transfer(in *endpoint.Incoming) {
	d, charge := in.Delivery, a.ls.TakeCharge()
	ms, err := wire.Unpack(nil, in)
	if err == nil {
		err = a.ls.all.add(a.counter, int64(len(ms)))
	}
	a.ls.Go(func() { a.ls.Post(azure.Event{To: a, In: d, Charge: charge, Err: err}) })
}

func (a *adder) Handle(e *azure.Event) {
	if e.Err != nil {
		a.link.Settle(e.In, frame.Rejected(a.ls.WireError(a.counter.path, e.Err)))
		return
	}
	a.link.Settle(e.In, frame.Accepted())
}

func (a *adder) Credit()                       {}
func (a *adder) Disposition(*endpoint.Outcome) {}
func (a *adder) Paths() []string               { return []string{a.counter.path} }
func (a *adder) Detached()                     {}
func (a *adder) Check() error {
	if err := a.ls.IsStill(a.counter.path, a.counter.id); err != nil {
		return err
	}
	return a.ls.Require(access.Send, a.counter.path)
}

// reader is a link that gets the sum for each credit.
type reader struct {
	ls          *counterLinks
	link        *endpoint.Link
	counter     *counter
	epoch, plus int64
	sent        uint64
}

// take makes r the reader of its counter, in place of one with an epoch that is not
// higher, which may be on another connection.
func (r *reader) take() error {
	r.ls.all.mu.Lock()
	defer r.ls.all.mu.Unlock()
	if old := r.counter.reader; old != nil {
		if old.epoch > r.epoch {
			return errStolen
		}
		old.ls.Do(func() { old.link.Detach(old.ls.WireError(old.counter.path, errStolen)) })
	}
	r.counter.reader = r
	return nil
}

func (r *reader) Credit() {
	for r.link.Credit() > 0 {
		r.sent++
		sum := codec.Long(r.ls.all.read(r.counter) + r.plus)
		payload := (&message.Draft{Value: &sum}).Encode(nil)
		if r.link.Send(endpoint.Outgoing{Tag: wire.Tag(r.sent), Settled: true, Payload: payload}) != nil {
			return
		}
	}
}

func (r *reader) Transfer(*endpoint.Incoming)   {}
func (r *reader) Disposition(*endpoint.Outcome) {}
func (r *reader) Paths() []string               { return []string{r.counter.path} }
func (r *reader) Check() error                  { return r.ls.Require(access.Listen, r.counter.path) }
func (r *reader) Detached() {
	r.ls.all.mu.Lock()
	defer r.ls.all.mu.Unlock()
	if r.counter.reader == r {
		r.counter.reader = nil
	}
}

// echoes is another personality, the first of the service: whatever begins with echo/
// rejects each message with its size. It is there so that a connection has links of two
// kinds, and answers for names that nothing has.
type echoes struct{}

func (e *echoes) Find(path string) (uint64, error) {
	if strings.HasPrefix(path, "echo/") {
		return 1, nil
	}
	return 0, fmt.Errorf("%w: %q", broker.ErrNotFound, path)
}
func (e *echoes) ServesNamespace() bool             { return false }
func (e *echoes) Conditions() []condition.Condition { return nil }
func (e *echoes) Open(c *azure.Conn) azure.Links    { return &echoLinks{c} }

type echoLinks struct{ *azure.Conn }

func (ls *echoLinks) Stop()                                    {}
func (ls *echoLinks) Closed()                                  {}
func (ls *echoLinks) Operation(string) (azure.Operation, bool) { return azure.Operation{}, false }
func (ls *echoLinks) OpenSender(path string) (azure.Sender, error) {
	return nil, fmt.Errorf("%w: %q", broker.ErrNotFound, path)
}
func (ls *echoLinks) Attach(l *endpoint.Link, path string) error {
	if err := ls.Require(access.Send, path); err != nil {
		return err
	}
	if !strings.HasPrefix(path, "echo/") {
		return fmt.Errorf("%w: %q", broker.ErrNotFound, path)
	}
	ls.Attached(l, &echo{ls: ls, link: l, path: path})
	l.Accept(endpoint.Accept{Credit: 10})
	return nil
}

// echo is a link to an echo.
type echo struct {
	ls   *echoLinks
	link *endpoint.Link
	path string
}

func (e *echo) Transfer(in *endpoint.Incoming) {
	e.link.Settle(in.Delivery, frame.Rejected(endpoint.Errorf("toy:echo", "%d bytes", len(in.Payload))))
}
func (e *echo) Credit()                       {}
func (e *echo) Disposition(*endpoint.Outcome) {}
func (e *echo) Check() error                  { return e.ls.Require(access.Send, e.path) }
func (e *echo) Paths() []string               { return []string{e.path} }
func (e *echo) Detached()                     {}
