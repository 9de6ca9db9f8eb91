// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/notify"
)

// prefetcher has the messages that were fetched before Receive asked for them. The
// caller has not seen them, so they can be released without counting as a delivery:
// when the broker recalls them for a better one, before their locks expire, and when
// the receiver is closed.
type prefetcher struct {
	r       *Receiver
	limit   int
	arrived notify.Signal // a message was added, or none comes any more

	mu            sync.Mutex
	prefetched    []prefetchedMessage    // guarded by mu; highest level first
	inUse         map[amqp.UUID]struct{} // guarded by mu; returned to the caller, not settled
	recalledEarly map[amqp.UUID]struct{} // guarded by mu; recalled before they arrived
	link          *link                  // guarded by mu; the link that is read
	creditLeft    int                    // guarded by mu; credit of link that is not used
	stop          context.CancelFunc     // guarded by mu; ends read
	readDone      chan struct{}          // guarded by mu; closed when read has ended
}

// prefetchedMessage is a message that the caller has not seen.
type prefetchedMessage struct {
	*Received
	level     uint8
	fetchedAt time.Time
}

// maxTokens bounds the sets of tokens: of recalled messages that never arrive, because
// they were settled before, and of messages that the caller never settles.
const maxTokens = 4096

func newPrefetcher(r *Receiver, limit int) *prefetcher {
	return &prefetcher{
		r: r, limit: min(limit, maxCredit), arrived: notify.New(),
		inUse: map[amqp.UUID]struct{}{}, recalledEarly: map[amqp.UUID]struct{}{},
	}
}

// addToken adds a token to set. A full set is cleared first: a recall or two is then
// answered wrongly, which the broker corrects with the next one.
func addToken(set map[amqp.UUID]struct{}, token amqp.UUID) {
	if len(set) >= maxTokens {
		clear(set)
	}
	set[token] = struct{}{}
}

// attach starts to fetch on a new link.
func (a *prefetcher) attach(ctx context.Context, l *link) error {
	if l.receiver.Properties()[propGranted] == true {
		recalls, err := l.conn.openReceiver(ctx, a.r.entity+recallSuffix, &amqp.ReceiverOptions{
			Credit:     inboxCredit,
			Properties: map[string]any{propLink: l.receiver.LinkName()},
		})
		if err != nil {
			return err
		}
		l.conn.work.Go(func() { a.serveRecalls(l, recalls) })
	}
	reading, stop := context.WithCancel(l.conn.life)
	over := make(chan struct{})
	a.mu.Lock()
	a.link, a.creditLeft, a.stop, a.readDone = l, 0, stop, over
	a.mu.Unlock()
	l.conn.work.Go(func() {
		defer close(over)
		defer stop()
		a.read(reading, l)
	})
	l.conn.work.Go(func() { a.releaseStale(l) })
	a.refill()
	return nil
}

// current reports whether l is the link that messages come on.
func (a *prefetcher) current(l *link) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.link == l && l.usable()
}

// refill gives credit for as many messages as are missing.
func (a *prefetcher) refill() {
	a.mu.Lock()
	l := a.link
	n := a.limit - len(a.prefetched) - a.creditLeft
	if n > 0 {
		a.creditLeft += n
	}
	a.mu.Unlock()
	if n > 0 && l.receiver.IssueCredit(uint32(n)) != nil {
		l.broken.Store(true) // the next Receive opens another
	}
}

// read stores messages as they arrive, until the link or ctx ends.
func (a *prefetcher) read(ctx context.Context, l *link) {
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
		if a.add(l, prefetchedMessage{m, uint8(level), time.Now()}) {
			a.arrived.Notify()
		} else {
			a.release(l.conn.life, m)
		}
	}
}

// add inserts a message by level. It returns false if the message was recalled.
func (a *prefetcher) add(l *link, k prefetchedMessage) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.link == l {
		a.creditLeft--
	}
	if _, wanted := a.recalledEarly[k.token]; wanted {
		delete(a.recalledEarly, k.token)
		return false
	}
	at := slices.IndexFunc(a.prefetched, func(o prefetchedMessage) bool { return o.level < k.level })
	if at < 0 {
		at = len(a.prefetched)
	}
	a.prefetched = slices.Insert(a.prefetched, at, k)
	return true
}

// expired reports whether someone else may have the message by now. A clock that was past
// the lock when the message came cannot tell.
func (m *prefetchedMessage) expired(now time.Time) bool {
	return m.LockedUntil.After(m.fetchedAt) && !now.Before(m.LockedUntil)
}

// take removes and returns up to n messages, highest level first. Those whose locks have
// expired are dropped: while there was no connection, nobody has released them.
func (a *prefetcher) take(n int) []*Received {
	now := time.Now()
	a.mu.Lock()
	held := len(a.prefetched)
	a.prefetched = slices.DeleteFunc(a.prefetched, func(m prefetchedMessage) bool { return m.expired(now) })
	n = min(n, len(a.prefetched))
	out := make([]*Received, n)
	for i := range n {
		out[i] = a.prefetched[i].Received
		addToken(a.inUse, out[i].token)
	}
	a.prefetched = slices.Delete(a.prefetched, 0, n)
	fewer := len(a.prefetched) < held
	a.mu.Unlock()
	if fewer {
		a.refill()
	}
	return out
}

// settled removes a message that the caller has settled.
func (a *prefetcher) settled(token amqp.UUID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.inUse, token)
}

// serveRecalls releases the messages that the broker recalls, until the link ends. If
// one is in use it says so, and the broker recalls another.
func (a *prefetcher) serveRecalls(main, recalls *link) {
	defer func() { _ = recalls.close(main.conn.life) }() // it may be closed already
	for a.current(main) || main.usable() {
		m, err := recalls.receiver.Receive(main.conn.life, nil)
		if err != nil {
			return
		}
		answer := recalls.receiver.AcceptMessage
		tokens, _ := m.Value.([]any)
		for _, v := range tokens {
			if token, ok := v.(amqp.UUID); ok && !a.recall(main.conn.life, token) {
				answer = recalls.receiver.ReleaseMessage
			}
		}
		if err := answer(main.conn.life, m); err != nil {
			return
		}
	}
}

// recall releases a message, now or when it arrives. It returns false if the caller
// has it.
func (a *prefetcher) recall(ctx context.Context, token amqp.UUID) bool {
	a.mu.Lock()
	at := slices.IndexFunc(a.prefetched, func(k prefetchedMessage) bool { return k.token == token })
	if at < 0 {
		defer a.mu.Unlock()
		if _, begun := a.inUse[token]; begun {
			return false
		}
		addToken(a.recalledEarly, token)
		return true
	}
	m := a.prefetched[at].Received
	a.prefetched = slices.Delete(a.prefetched, at, at+1)
	a.mu.Unlock()
	a.release(ctx, m)
	return true
}

// release releases a message that the caller has not seen, and fetches another. If
// that fails, its lock expires.
func (a *prefetcher) release(ctx context.Context, m *Received) {
	if err := a.r.settleUnseen(ctx, m, a.r.release(nil)); err != nil {
		a.r.client.options.Log.Debug("message not released", "err", err)
	}
	a.refill()
}

// staleCheckInterval is how often the locks of prefetched messages are checked.
const staleCheckInterval = time.Second

// maxHeld is how long a message is kept at most. If our clock is behind the broker's, a
// lock seems to last longer than it does: the caller would get a message without one.
const maxHeld = 20 * time.Second

// releaseStale releases messages that were prefetched for two thirds of their lock, so
// that no lock expires, which would count as a failed delivery.
func (a *prefetcher) releaseStale(l *link) {
	tick := time.NewTicker(staleCheckInterval)
	defer tick.Stop()
	for a.current(l) {
		select {
		case now := <-tick.C:
			for _, m := range a.stale(now) {
				a.release(l.conn.life, m)
			}
		case <-l.conn.amqp.Done():
			return
		case <-l.conn.life.Done():
			return
		}
	}
}

// stale removes and returns the messages whose locks end soon.
func (a *prefetcher) stale(now time.Time) []*Received {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*Received
	a.prefetched = slices.DeleteFunc(a.prefetched, func(k prefetchedMessage) bool {
		old := now.Sub(k.fetchedAt) >= maxHeld ||
			!k.LockedUntil.IsZero() && k.LockedUntil.Sub(now) < k.LockedUntil.Sub(k.fetchedAt)/3
		if old {
			out = append(out, k.Received)
		}
		return old
	})
	return out
}

// receive waits for prefetched messages.
func (a *prefetcher) receive(ctx context.Context, limit int) ([]*Received, error) {
	var out []*Received
	err := a.r.client.retry(ctx, func(o *outage) error {
		l, err := a.r.open(ctx)
		if err != nil {
			return err
		}
		o.reset(time.Now())
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
		return nil, failure("receive from", a.r.entity, err)
	}
	return out, nil
}

// poll returns what has been fetched.
func (a *prefetcher) poll(ctx context.Context, limit int) ([]*Received, error) {
	err := a.r.client.retry(ctx, func(*outage) error {
		_, err := a.r.open(ctx)
		return err
	})
	if err != nil {
		return nil, failure("receive from", a.r.entity, err)
	}
	return a.take(max(limit, 1)), nil
}

// close releases all messages, also those that are still arriving.
func (a *prefetcher) close(ctx context.Context) {
	a.mu.Lock()
	l, stop, over := a.link, a.stop, a.readDone
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
	for _, k := range a.prefetched {
		all = append(all, k.Received)
	}
	a.prefetched = nil
	a.mu.Unlock()
	var wg sync.WaitGroup
	for _, m := range all {
		wg.Go(func() { _ = a.r.settleUnseen(ctx, m, a.r.release(nil)) }) // else its lock expires
	}
	wg.Wait()
}
