// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/notify"
)

// ahead keeps messages that were fetched before Receive asked for them. Nobody has
// seen them, so they can be given back without a trace: when the broker has a
// better one and asks for them, before their locks run out, and at the end.
type ahead struct {
	r       *Receiver
	limit   int
	arrived notify.Signal // a message was added, or none comes any more

	mu    sync.Mutex
	kept  []kept                 // guarded by mu; best first
	begun map[amqp.UUID]struct{} // guarded by mu; handed over and not settled
	early map[amqp.UUID]struct{} // guarded by mu; asked for before they came
	link  *link                  // guarded by mu; that they come on
	asked int                    // guarded by mu; credit of link that is not used up
	stop  context.CancelFunc     // guarded by mu; ends read
	over  chan struct{}          // guarded by mu; closed when read has ended
}

// kept is a message that nobody has seen.
type kept struct {
	*Received
	level uint8
	since time.Time
}

// maxTokens bounds the tokens that never come, of messages that were settled before
// the broker's wish arrived, and those of messages that nobody settles.
const maxTokens = 4096

func newAhead(r *Receiver, limit int) *ahead {
	return &ahead{
		r: r, limit: min(limit, maxCredit), arrived: notify.New(),
		begun: map[amqp.UUID]struct{}{}, early: map[amqp.UUID]struct{}{},
	}
}

// note adds a token to those in set. To forget the others costs a recall or two.
func note(set map[amqp.UUID]struct{}, token amqp.UUID) {
	if len(set) >= maxTokens {
		clear(set)
	}
	set[token] = struct{}{}
}

// attach starts to fetch on a new link.
func (a *ahead) attach(ctx context.Context, l *link) error {
	if l.receiver.Properties()[propGranted] == true {
		wishes, err := l.conn.openReceiver(ctx, a.r.entity+recallSuffix, &amqp.ReceiverOptions{
			Credit:     inboxCredit,
			Properties: map[string]any{propLink: l.receiver.LinkName()},
		})
		if err != nil {
			return err
		}
		l.conn.work.Go(func() { a.listen(l, wishes) })
	}
	reading, stop := context.WithCancel(l.conn.life)
	over := make(chan struct{})
	a.mu.Lock()
	a.link, a.asked, a.stop, a.over = l, 0, stop, over
	a.mu.Unlock()
	l.conn.work.Go(func() {
		defer close(over)
		defer stop()
		a.read(reading, l)
	})
	l.conn.work.Go(func() { a.tend(l) })
	a.refill()
	return nil
}

// current reports whether l is the link that messages come on.
func (a *ahead) current(l *link) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.link == l && l.usable()
}

// refill asks for as many messages as there is room for.
func (a *ahead) refill() {
	a.mu.Lock()
	l := a.link
	n := a.limit - len(a.kept) - a.asked
	if n > 0 {
		a.asked += n
	}
	a.mu.Unlock()
	if n > 0 && l.receiver.IssueCredit(uint32(n)) != nil {
		l.broken.Store(true) // whoever receives opens another
	}
}

// read takes in what comes until the link or ctx ends.
func (a *ahead) read(ctx context.Context, l *link) {
	for {
		raw, err := l.receiver.Receive(ctx, nil)
		if err != nil {
			if ctx.Err() == nil {
				l.broken.Store(true)
			}
			a.arrived.Notify()
			return
		}
		m := a.r.accept(l, raw)
		level, _ := integer(raw.Annotations[annotationLevel])
		if a.add(l, kept{m, uint8(level), time.Now()}) {
			a.arrived.Notify()
		} else {
			a.giveBack(l.conn.life, m)
		}
	}
}

// add keeps a message in its place, unless it was asked for already.
func (a *ahead) add(l *link, k kept) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.link == l {
		a.asked--
	}
	if _, wanted := a.early[k.token]; wanted {
		delete(a.early, k.token)
		return false
	}
	at := slices.IndexFunc(a.kept, func(o kept) bool { return o.level < k.level })
	if at < 0 {
		at = len(a.kept)
	}
	a.kept = slices.Insert(a.kept, at, k)
	return true
}

// take hands over up to n of the best.
func (a *ahead) take(n int) []*Received {
	a.mu.Lock()
	n = min(n, len(a.kept))
	out := make([]*Received, n)
	for i := range n {
		out[i] = a.kept[i].Received
		note(a.begun, out[i].token)
	}
	a.kept = slices.Delete(a.kept, 0, n)
	a.mu.Unlock()
	if n > 0 {
		a.refill()
	}
	return out
}

// settled forgets a message that the caller is done with.
func (a *ahead) settled(token amqp.UUID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.begun, token)
}

// listen gives back what the broker asks for, until the link ends, or says that it
// has been started: then the broker asks for something else.
func (a *ahead) listen(main, wishes *link) {
	defer func() { _ = wishes.close(main.conn.life) }() // it may be gone; we only tidy up
	for a.current(main) || main.usable() {
		m, err := wishes.receiver.Receive(main.conn.life, nil)
		if err != nil {
			return
		}
		answer := wishes.receiver.AcceptMessage
		tokens, _ := m.Value.([]any)
		for _, v := range tokens {
			if token, ok := v.(amqp.UUID); ok && !a.recalled(main.conn.life, token) {
				answer = wishes.receiver.ReleaseMessage
			}
		}
		if err := answer(main.conn.life, m); err != nil {
			return
		}
	}
}

// recalled gives a message back, now or when it comes. It reports false if it was
// handed over.
func (a *ahead) recalled(ctx context.Context, token amqp.UUID) bool {
	a.mu.Lock()
	at := slices.IndexFunc(a.kept, func(k kept) bool { return k.token == token })
	if at < 0 {
		defer a.mu.Unlock()
		if _, begun := a.begun[token]; begun {
			return false
		}
		note(a.early, token)
		return true
	}
	m := a.kept[at].Received
	a.kept = slices.Delete(a.kept, at, at+1)
	a.mu.Unlock()
	a.giveBack(ctx, m)
	return true
}

// giveBack releases a message that nobody has seen, and asks for another. If it
// cannot be released, its lock runs out.
func (a *ahead) giveBack(ctx context.Context, m *Received) {
	if err := a.r.Release(ctx, m); err != nil {
		a.r.client.options.Log.Debug("message not given back", "err", err)
	}
	a.refill()
}

// tendEvery is how often messages are looked at whose locks run out.
const tendEvery = time.Second

// tend gives back what has been kept for two thirds of its lock, so that nobody
// counts a failure that was none.
func (a *ahead) tend(l *link) {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for a.current(l) {
		select {
		case now := <-tick.C:
			for _, m := range a.stale(now) {
				a.giveBack(l.conn.life, m)
			}
		case <-l.conn.amqp.Done():
			return
		case <-l.conn.life.Done():
			return
		}
	}
}

// stale takes out what has been kept for too long.
func (a *ahead) stale(now time.Time) []*Received {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*Received
	a.kept = slices.DeleteFunc(a.kept, func(k kept) bool {
		old := !k.LockedUntil.IsZero() && k.LockedUntil.Sub(now) < k.LockedUntil.Sub(k.since)/3
		if old {
			out = append(out, k.Received)
		}
		return old
	})
	return out
}

// receive waits for messages that were fetched.
func (a *ahead) receive(ctx context.Context, limit int) ([]*Received, error) {
	var out []*Received
	err := a.r.client.retry(ctx, func(o *outage) error {
		l, err := a.r.open(ctx)
		if err != nil {
			return err
		}
		o.over(time.Now())
		for {
			if out = a.take(max(limit, 1)); len(out) > 0 {
				return nil
			}
			if !l.usable() {
				return errLinkGone
			}
			select {
			case <-a.arrived:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("receive from %q: %w", a.r.entity, err)
	}
	return out, nil
}

// close gives everything back, also what is on its way.
func (a *ahead) close(ctx context.Context) {
	a.mu.Lock()
	l, stop, over := a.link, a.stop, a.over
	a.limit = 0
	a.mu.Unlock()
	if l == nil {
		return
	}
	stop()
	<-over
	var all []*Received
	if l.usable() {
		for _, raw := range l.drain(ctx, nil) {
			all = append(all, a.r.accept(l, raw))
		}
	}
	a.mu.Lock()
	for _, k := range a.kept {
		all = append(all, k.Received)
	}
	a.kept = nil
	a.mu.Unlock()
	var wg sync.WaitGroup
	for _, m := range all {
		wg.Go(func() { _ = a.r.Release(ctx, m) }) // else its lock runs out
	}
	wg.Wait()
}
