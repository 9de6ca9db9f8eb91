// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// The waits between attempts: doubled from the first to the last, with jitter so
// that a thousand clients do not come back in the same instant.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = 5 * time.Second
)

// outage counts one stretch of failures of one operation.
type outage struct {
	limit  time.Duration // how long it may last
	since  time.Time     // of the first failure; zero while things work
	worked time.Time     // when reset was last called
	failed int           // in a row, for the wait
}

// next says how long to wait after a failure at now, or that the outage has
// lasted long enough.
func (o *outage) next(now time.Time) (time.Duration, bool) {
	if o.since.IsZero() {
		o.since = now
		if now.Sub(o.worked) > lastWait {
			o.failed = 0
		}
	}
	if now.Sub(o.since) >= o.limit {
		return 0, false
	}
	wait := min(firstWait<<min(o.failed, 10), lastWait)
	o.failed++
	return wait/2 + rand.N(wait/2), true
}

// reset ends the outage: the operation has done its part and now waits for a message
// or a reply, without limit. A later failure is a new outage. Its waits start from
// the shortest only if things worked for lastWait, so that a peer that accepts and
// drops connections at once is not flooded.
func (o *outage) reset(now time.Time) { o.since, o.worked = time.Time{}, now }

// retry runs op until it succeeds, fails permanently, the outage lasts too long, or
// ctx ends.
func (c *Client) retry(ctx context.Context, op func(*outage) error) error {
	o := outage{limit: c.options.RetryTimeout}
	for {
		// go-amqp answers a context that has ended with half-open sessions.
		err := context.Cause(ctx)
		if err == nil {
			err = op(&o)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case c.life.Err() != nil:
			return ErrClosed
		}
		err = translate(err)
		if permanent(err) {
			return err
		}
		wait, ok := o.next(time.Now())
		if busy, is := errors.AsType[*BusyError](err); is {
			// There is no use in asking before, nor in waiting for what comes
			// too late.
			wait = max(wait, busy.RetryAfter)
			ok = ok && time.Since(o.since)+wait < o.limit
		}
		if !ok {
			return err
		}
		c.options.Log.DebugContext(ctx, "trying again", "err", err, "after", wait)
		c.pause(ctx, wait)
	}
}

// pause waits, at most until something ends: the next attempt then says what.
func (c *Client) pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-c.life.Done():
	}
}
