// SPDX-License-Identifier: Apache-2.0

//go:build linux

package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
)

// senders is how many send at once.
const senders = 4

// crew is a number of goroutines that load a broker.
type crew struct {
	wg  sync.WaitGroup
	mu  sync.Mutex
	err error // the first; guarded by mu
}

// Go runs f.
func (c *crew) Go(f func() error) {
	c.wg.Go(func() {
		if err := f(); err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.err = cmp.Or(c.err, err)
		}
	})
}

// wait returns what went wrong.
func (c *crew) wait() error {
	c.wg.Wait()
	return c.err
}

// burst lets senders fill the disk until each of them has been rejected several
// times in a row, or until there are limit messages; zero is no limit.
func (l *ledger) burst(ctx context.Context, b *broker, limit int) {
	l.t.Helper()
	var all crew
	for range senders {
		all.Go(func() error { return l.sendUntilFull(ctx, b, limit) })
	}
	if err := all.wait(); err != nil {
		l.t.Fatalf("%v\n%s", err, b.lastWords())
	}
	b.alive()
}

// sendUntilFull is one sender of a burst.
func (l *ledger) sendUntilFull(ctx context.Context, b *broker, limit int) error {
	s, done, err := l.open(ctx, b)
	if err != nil {
		return err
	}
	defer done()
	for refused := 0; refused < 5; {
		l.mu.Lock()
		enough := limit > 0 && len(l.states) >= limit
		l.mu.Unlock()
		if enough {
			return nil
		}
		switch err := l.send(ctx, s); {
		case isFull(err):
			refused++
		case errors.Is(err, client.ErrBusy): // it may try again
		case err != nil:
			return err
		default:
			refused = 0
		}
	}
	return nil
}

// open returns a sender for each queue, and what closes them.
func (l *ledger) open(ctx context.Context, b *broker) ([]*client.Sender, func(), error) {
	c, err := b.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	var all []*client.Sender
	for _, q := range queues {
		s, err := c.OpenSender(ctx, q, nil)
		if err != nil {
			return nil, nil, errors.Join(err, c.Close())
		}
		all = append(all, s)
	}
	return all, func() { _ = c.Close() }, nil // fails if the broker was killed
}

// send sends a few messages, which are together in one transfer, to one queue.
func (l *ledger) send(ctx context.Context, to []*client.Sender) error {
	queue := rand.IntN(len(to))
	ns := l.begin(queue)
	ms := make([]*client.Message, len(ns))
	for i, n := range ns {
		ms[i] = l.compose(n)
	}
	err := to[queue].SendBatch(ctx, ms)
	switch {
	case err == nil:
		l.set(waiting, ns...)
	case errors.Is(err, client.ErrQuota), errors.Is(err, client.ErrBusy):
		l.set(absent, ns...)
	}
	return err // otherwise they may be there or not
}

// admitted waits until sends are admitted again.
func (l *ledger) admitted(ctx context.Context, b *broker) {
	l.t.Helper()
	s, done, err := l.open(ctx, b)
	if err != nil {
		l.t.Fatal(err)
	}
	defer done()
	const patience = time.Minute
	for begin := time.Now(); ; {
		err := l.send(ctx, s)
		switch {
		case err == nil:
			return
		case !isFull(err) && !errors.Is(err, client.ErrBusy):
			l.t.Fatalf("send: %v\n%s", err, b.lastWords())
		case time.Since(begin) > patience:
			l.t.Fatalf("sends are not admitted again: %v\n%s", err, b.lastWords())
		}
		b.alive()
		<-time.After(50 * time.Millisecond)
	}
}

// settle receives count messages of a queue, or of its dead letters, and settles them.
func (l *ledger) settle(ctx context.Context, b *broker, entity string, count int, how settlement) error {
	c, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	r, err := c.OpenReceiver(ctx, entity, nil)
	if err != nil {
		return err
	}
	for count > 0 {
		ms, err := r.Receive(ctx, min(200, count))
		if err != nil {
			return err
		}
		ns, err := l.received(ms, how.asked)
		if err == nil {
			err = how.do(ctx, r, ms)
		}
		if err != nil {
			return err
		}
		l.set(how.done, ns...)
		count -= len(ms)
	}
	return nil
}

// settlement is what consumers do with messages.
type settlement struct {
	asked state // while there is no answer
	done  state // when it is acknowledged
	do    func(context.Context, *client.Receiver, []*client.Received) error
}

var (
	complete = settlement{completing, absent, func(ctx context.Context, r *client.Receiver, ms []*client.Received) error {
		var all crew
		for _, m := range ms {
			all.Go(func() error { return r.Complete(ctx, m) })
		}
		return all.wait()
	}}
	deadLetter = settlement{dying, dead, func(ctx context.Context, r *client.Receiver, ms []*client.Received) error {
		var all crew
		for _, m := range ms {
			all.Go(func() error { return r.DeadLetter(ctx, m, "not wanted", "it arrived while the disk was full") })
		}
		return all.wait()
	}}
)

// mustSettle is settle for messages that must be there, and be settled.
func (l *ledger) mustSettle(ctx context.Context, b *broker, entity string, count int, how settlement) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := l.settle(ctx, b, entity, count, how); err != nil {
		l.t.Fatalf("%v\n%s", err, b.lastWords())
	}
	b.alive()
}

// mustConsume completes a part of the messages of some queues, all queues at once.
func (l *ledger) mustConsume(ctx context.Context, b *broker, part float64, of ...int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var all crew
	for _, q := range of {
		count := int(math.Ceil(part * float64(l.count(q, waiting))))
		all.Go(func() error { return l.settle(ctx, b, queues[q], count, complete) })
	}
	if err := all.wait(); err != nil {
		l.t.Fatalf("%v\n%s", err, b.lastWords())
	}
	b.alive()
}

// drain completes all that there is, dead letters included.
func (l *ledger) drain(ctx context.Context, b *broker) {
	l.t.Helper()
	l.mustConsume(ctx, b, 1, everyQueue...)
	for q, name := range queues {
		l.mustSettle(ctx, b, client.DeadLetterQueue(name), l.count(q, dead), complete)
	}
	l.check(ctx, b)
	if n := l.total(waiting) + l.total(dead); n > 0 {
		l.t.Fatalf("%d messages are left of those that were drained", n)
	}
}

// check lists every message there is and compares that with what is known.
func (l *ledger) check(ctx context.Context, b *broker) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	l.mu.Lock()
	found := make([]place, len(l.states))
	l.mu.Unlock()
	c := b.connect(ctx)
	for q, name := range queues {
		for _, from := range []struct {
			entity string
			place  place
		}{{name, inQueue}, {client.DeadLetterQueue(name), inDeadLetters}} {
			if err := l.list(ctx, c, from.entity, q, from.place, found); err != nil {
				l.t.Fatalf("list %s: %v\n%s", from.entity, err, b.lastWords())
			}
		}
	}
	l.compare(found)
}

// list adds the messages of a queue, or of its dead letters, to what was found.
func (l *ledger) list(ctx context.Context, c *client.Client, entity string, queue int, at place, found []place) error {
	r, err := c.OpenReceiver(ctx, entity, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	for next := client.SeqNo(0); ; {
		ms, err := r.Peek(ctx, next, 1000)
		if err != nil || len(ms) == 0 {
			return err
		}
		for _, m := range ms {
			n, err := l.verify(m)
			if err != nil {
				return err
			}
			l.mu.Lock()
			home := int(l.queues[n])
			l.mu.Unlock()
			if home != queue {
				return fmt.Errorf("message %d was sent to %s", n, queues[home])
			}
			if found[n]&at != 0 {
				return fmt.Errorf("message %d is there twice", n)
			}
			found[n] |= at
			next = m.SeqNo + 1
		}
	}
}

// everyQueue are the indices of queues.
var everyQueue = []int{0, 1, 2, 3}
