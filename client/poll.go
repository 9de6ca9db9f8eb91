// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// Poll returns up to limit of the messages that the broker has now, the most urgent
// first. It does not wait for one: none means that there is none. With Prefetch it
// returns what has been fetched.
//
// Our own broker answers in one round trip. Others, and sessions, get a twentieth of a
// second to send the first message, and may miss one that comes later.
func (r *Receiver) Poll(ctx context.Context, limit int) ([]*Received, error) {
	if err := r.turn(ctx); err != nil {
		return nil, err
	}
	defer r.yield()
	take := r.fetchNow
	if r.prefetcher != nil {
		take = r.prefetcher.poll
	}
	ms, err := take(ctx, limit)
	return r.client.options.Hooks.received(ctx, ms, err)
}

// fetchNow takes the messages that the broker has.
func (r *Receiver) fetchNow(ctx context.Context, limit int) ([]*Received, error) {
	return r.fetchFrom(ctx, limit, r.openPoll, (*link).poll)
}

// go-amqp cannot grant credit and drain it in one flow: it forgets the grant, or the
// broker has not had the time to look. So there is a link of its own for polls, on which
// our broker drains each grant, and says by a link property when that is done.

// polled is told when a poll is over.
type polled struct {
	end atomic.Pointer[context.CancelCauseFunc]
}

// errPolled ends the wait of a poll that the broker has answered.
var errPolled = errors.New("client: polled")

// told takes the properties of a flow; it runs on a goroutine of go-amqp.
func (p *polled) told(properties map[string]any) {
	if end := p.end.Load(); end != nil && properties[names.Polled] == true {
		(*end)(errPolled)
	}
}

// openPoll returns the link for polls, or the receiver's own where the broker knows no
// such links. A session is locked by its one link.
func (r *Receiver) openPoll(ctx context.Context) (*link, error) {
	if r.noPolls.Load() || r.session {
		return r.open(ctx)
	}
	if r.closed.Load() {
		return nil, ErrClosed
	}
	conn, err := r.client.connection(ctx)
	if err != nil {
		return nil, err
	}
	l, err := r.polls.get(ctx, (*link).usable, func() (*link, error) {
		return authorized(ctx, conn, r.entities(), func() (*link, error) {
			return unlessClosed(&r.closed)(r.attachPoll(ctx, conn))
		})
	})
	if errors.Is(err, errNoPolls) {
		r.noPolls.Store(true)
		return r.open(ctx)
	}
	return l, err
}

// errNoPolls means that the broker does not know links for polls.
var errNoPolls = errors.New("client: no links for polls")

func (r *Receiver) attachPoll(ctx context.Context, conn *connection) (*link, error) {
	told := new(polled)
	o := r.linkOptions()
	o.Properties = with(o.Properties, names.Poll, true)
	o.OnLinkStateProperties = told.told
	l, err := conn.openReceiver(ctx, r.entity, o)
	if err != nil {
		return nil, err
	}
	if l.receiver.Properties()[propGranted] != true {
		_ = l.close(ctx) // it would do no harm
		return nil, errNoPolls
	}
	l.polled = told
	return l, nil
}

// poll asks for limit messages and waits until the broker has sent what it has. As
// receive does, it returns messages or an error, never both.
func (l *link) poll(ctx context.Context, limit int) ([]*amqp.Message, error) {
	if l.polled == nil {
		return l.pollBriefly(ctx, limit)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	waiting, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	// A caller that ends gets what is on its way; a broker that says nothing loses the
	// link, and with it the credit.
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(closeTimeout, func() { end(context.DeadlineExceeded) })
	})()
	l.polled.end.Store(&end)
	defer l.polled.end.Store(nil)
	if err := l.receiver.IssueCredit(uint32(limit)); err != nil {
		return nil, l.failed(ctx, err)
	}
	var out []*amqp.Message
	var err error
	for err == nil {
		var m *amqp.Message
		if m, err = l.receiver.Receive(waiting, nil); err == nil {
			out = append(out, m)
		}
	}
	for m := l.receiver.Prefetched(); m != nil; m = l.receiver.Prefetched() {
		out = append(out, m)
	}
	switch {
	case waiting.Err() == nil:
		err = l.failed(context.WithoutCancel(ctx), err)
	case !errors.Is(context.Cause(waiting), errPolled):
		l.broken.Store(true)
		_ = endSession(ctx, l.session) // it may be gone; we only tidy up
		err = context.Cause(ctx)
	default:
		err = context.Cause(ctx) // nil, unless the caller has ended
	}
	if len(out) > 0 {
		return out, nil
	}
	return nil, err
}

// pollWait is how long a broker may take to send the first message that it has, if it
// does not say that it has none.
const pollWait = 50 * time.Millisecond

// pollBriefly asks for limit messages, and takes the credit back as soon as none comes.
func (l *link) pollBriefly(ctx context.Context, limit int) ([]*amqp.Message, error) {
	brief, cancel := context.WithTimeout(ctx, pollWait)
	defer cancel()
	out, err := l.receive(brief, limit)
	if err != nil && brief.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return out, err
}
