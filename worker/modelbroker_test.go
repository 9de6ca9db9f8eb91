// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

// modelBroker is a broker in memory, for tests with synthetic time: levels, locks that
// expire, outages, and answers that take a while.
type modelBroker struct {
	lock       time.Duration
	ahead      time.Duration // of its clock before that of the pool
	extensions bool
	deliveries uint32 // failures that make a dead letter; zero is none

	mu       sync.Mutex
	rng      *rand.Rand
	messages []*modelMessage          // in the order of arrival; guarded by mu
	locks    map[*client.Received]int // number of the message that is locked; guarded by mu
	changed  chan struct{}            // closed and replaced when something gets available; guarded by mu
	missing  map[string]bool          // sources that do not exist; guarded by mu
	down     bool                     // guarded by mu
	open     int                      // receivers; guarded by mu
	opened   int                      // receivers ever; guarded by mu
	locked   int                      // the most messages that were locked at a time; guarded by mu
}

type modelMessage struct {
	client.Message
	source   string
	level    uint8
	enqueued time.Time
	failures uint32
	retryAt  time.Time        // not before
	durable  bool             // its lock was renewed: a crash does not end it
	holder   *client.Received // nil: available
	done     bool
	dead     string // reason
	about    string // description
}

func newModelBroker(seed uint64) *modelBroker {
	return &modelBroker{
		lock: 10 * time.Second, extensions: true,
		rng:   rand.New(rand.NewPCG(seed, 1)),
		locks: map[*client.Received]int{}, changed: make(chan struct{}), missing: map[string]bool{},
	}
}

var errModelDown = errors.New("model: connection refused")

// send makes a message available and returns its number.
func (b *modelBroker) send(source, text string, level uint8) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages = append(b.messages, &modelMessage{
		Message: client.Message{Body: []byte(text), Properties: map[string]any{}},
		source:  source, level: level, enqueued: time.Now(),
	})
	b.wake()
	return len(b.messages) - 1
}

// wake has waiting receivers look again. Called with mu held.
func (b *modelBroker) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// elapse lets synthetic time pass.
func elapse(d time.Duration) { <-time.After(d) }

// pause lets time pass, as a network does.
func (b *modelBroker) pause() {
	b.mu.Lock()
	d := time.Duration(b.rng.IntN(1000)) * time.Microsecond
	b.mu.Unlock()
	elapse(d)
}

// crash takes the broker away. It forgets some of the locks, which count as failures: not
// those that were renewed, if it is ours.
func (b *modelBroker) crash() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = true
	for m, n := range b.locks {
		if b.rng.IntN(2) == 0 && !(b.messages[n].durable && b.extensions) {
			b.unlock(m, n)
			b.messages[n].failures++
		}
	}
	b.wake()
}

func (b *modelBroker) restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = false
	b.wake()
}

func (b *modelBroker) setMissing(source string, missing bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missing[source] = missing
}

// fail counts a failed delivery. Called with mu held.
func (b *modelBroker) fail(m *modelMessage) {
	if m.failures++; b.deliveries > 0 && m.failures >= b.deliveries {
		m.done, m.dead = true, "MaxDeliveryCountExceeded"
	}
}

// unlock makes a message available. Called with mu held.
func (b *modelBroker) unlock(m *client.Received, n int) {
	delete(b.locks, m)
	b.messages[n].holder, b.messages[n].durable = nil, false
	b.wake()
}

// left returns how many messages are neither done nor dead.
func (b *modelBroker) left() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, m := range b.messages {
		if !m.done {
			n++
		}
	}
	return n
}

func (b *modelBroker) message(n int) modelMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return *b.messages[n]
}

// modelReceiver is a receiver of a model broker.
type modelReceiver struct {
	b        *modelBroker
	sources  []string
	min, max int
	byLevel  bool
}

func (b *modelBroker) opener(ctx context.Context, entity string, o *client.ReceiverOptions) (worker.Receiver, error) {
	b.pause()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &modelReceiver{b: b, sources: append([]string{entity}, o.Sources...), max: 255, byLevel: o.SourceSelection == client.ByLevel}
	if o.MinPriority != "" {
		_, _ = fmt.Sscan(string(o.MinPriority), &r.min)
	}
	if o.MaxPriority != "" {
		_, _ = fmt.Sscan(string(o.MaxPriority), &r.max)
	}
	switch {
	case b.down:
		return nil, errModelDown
	case !b.extensions && (len(r.sources) > 1 || o.MinPriority != "" || o.MaxPriority != ""):
		return nil, client.ErrNotAllowed
	case r.min > r.max:
		return nil, client.ErrInvalid
	}
	for _, s := range r.sources {
		if b.missing[s] {
			return nil, client.ErrNotFound
		}
	}
	b.open++
	b.opened++
	return r, nil
}

// best returns the number of the message to deliver next, or -1. Called with mu held.
func (r *modelReceiver) best() int {
	best, at := -1, 0
	for n, m := range r.b.messages {
		if m.done || m.holder != nil || time.Now().Before(m.retryAt) || int(m.level) < r.min || int(m.level) > r.max {
			continue
		}
		source := -1
		for i, s := range r.sources {
			if strings.EqualFold(s, m.source) {
				source = i
			}
		}
		if source < 0 {
			continue
		}
		better := best < 0 || m.level > r.b.messages[best].level
		if !r.byLevel && best >= 0 && source != at {
			better = source < at
		}
		if better {
			best, at = n, source
		}
	}
	return best
}

// take locks up to limit messages.
func (r *modelReceiver) take(limit int) ([]*client.Received, error) {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, errModelDown
	}
	var out []*client.Received
	for len(out) < limit {
		n := r.best()
		if n < 0 {
			break
		}
		m := b.messages[n]
		got := &client.Received{
			Message: m.Message, SeqNo: client.SeqNo(n + 1), Source: m.source, Enqueued: m.enqueued,
			LockedUntil: time.Now().Add(b.lock + b.ahead), DeliveryCount: m.failures, Level: new(m.level),
		}
		got.Properties = maps.Clone(m.Properties)
		m.holder = got
		b.locks[got] = n
		b.locked = max(b.locked, len(b.locks))
		b.watch(got)
		out = append(out, got)
	}
	return out, nil
}

// watch ends a lock at its time, unless it was renewed.
func (b *modelBroker) watch(m *client.Received) {
	until := m.LockedUntil
	time.AfterFunc(b.lock, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if n, locked := b.locks[m]; locked && !m.LockedUntil.After(until) {
			b.unlock(m, n)
			b.messages[n].failures++
		}
	})
}

func (r *modelReceiver) Receive(ctx context.Context, limit int) ([]*client.Received, error) {
	for {
		r.b.mu.Lock()
		changed := r.b.changed
		r.b.mu.Unlock()
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		got, err := r.take(limit)
		if len(got) > 0 || err != nil {
			r.b.pause() // what was on its way arrives also after ctx has ended
			return got, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			r.b.pause()
			return nil, context.Cause(ctx)
		}
	}
}

func (r *modelReceiver) Poll(ctx context.Context, limit int) ([]*client.Received, error) {
	r.b.pause()
	got, err := r.take(limit)
	r.b.pause()
	return got, err
}

func (r *modelReceiver) Peek(_ context.Context, from client.SeqNo, limit int) ([]*client.Received, error) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	var out []*client.Received
	for n, m := range r.b.messages {
		if number := client.SeqNo(n + 1); !m.done && number >= from && m.source == r.sources[0] && len(out) < limit {
			peeked := &client.Received{Message: m.Message, SeqNo: number, Enqueued: m.enqueued}
			if r.b.extensions {
				peeked.Level = new(m.level)
				if m.holder != nil {
					peeked.LockedUntil = m.holder.LockedUntil
				}
			}
			out = append(out, peeked)
		}
	}
	return out, nil
}

// settle applies change if the lock is still there.
func (r *modelReceiver) settle(ctx context.Context, m *client.Received, change func(*modelMessage)) error {
	for {
		r.b.pause()
		if err := context.Cause(ctx); err != nil {
			return err
		}
		r.b.mu.Lock()
		if !r.b.down {
			break
		}
		changed := r.b.changed
		r.b.mu.Unlock()
		select { // as the client does, try again until the broker is back
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer r.b.mu.Unlock()
	n, locked := r.b.locks[m]
	if !locked {
		return client.ErrLockLost
	}
	r.b.unlock(m, n)
	change(r.b.messages[n])
	return nil
}

func (r *modelReceiver) Complete(ctx context.Context, ms ...*client.Received) error {
	return r.settle(ctx, ms[0], func(m *modelMessage) { m.done = true })
}

func (r *modelReceiver) Abandon(ctx context.Context, m *client.Received, properties map[string]any) error {
	return r.settle(ctx, m, func(m *modelMessage) { r.b.fail(m); maps.Copy(m.Properties, properties) })
}

func (r *modelReceiver) Retry(ctx context.Context, m *client.Received, after time.Duration, properties map[string]any) error {
	if after > 366*24*time.Hour {
		return client.ErrInvalid
	}
	return r.settle(ctx, m, func(m *modelMessage) {
		r.b.fail(m)
		maps.Copy(m.Properties, properties)
		m.retryAt = time.Now().Add(after)
		time.AfterFunc(after, func() {
			r.b.mu.Lock()
			defer r.b.mu.Unlock()
			r.b.wake()
		})
	})
}

func (r *modelReceiver) SaveState(ctx context.Context, m *client.Received, state []byte) (time.Time, error) {
	r.b.pause()
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	n, locked := r.b.locks[m]
	switch {
	case r.b.down:
		return time.Time{}, errModelDown
	case !locked:
		return time.Time{}, client.ErrLockLost
	case len(state) > 64<<10:
		return time.Time{}, client.ErrInvalid
	}
	r.b.messages[n].Properties["triagemq-state"] = bytes.Clone(state)
	r.b.messages[n].durable = true
	return m.LockedUntil, context.Cause(ctx)
}

func (r *modelReceiver) Release(ctx context.Context, m *client.Received, properties map[string]any) error {
	return r.settle(ctx, m, func(m *modelMessage) { maps.Copy(m.Properties, properties) })
}

func (r *modelReceiver) DeadLetter(ctx context.Context, m *client.Received, reason, description string) error {
	return r.settle(ctx, m, func(m *modelMessage) { m.done, m.dead, m.about = true, reason, description })
}

func (r *modelReceiver) RenewLock(ctx context.Context, m *client.Received) error {
	r.b.pause()
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	_, locked := r.b.locks[m]
	switch {
	case r.b.down:
		return errModelDown
	case !locked:
		return client.ErrLockLost
	}
	m.LockedUntil = time.Now().Add(r.b.lock + r.b.ahead)
	r.b.messages[r.b.locks[m]].durable = true
	r.b.watch(m)
	return context.Cause(ctx)
}

func (r *modelReceiver) Extensions() bool { return r.b.extensions }

func (r *modelReceiver) Close() error {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	r.b.open--
	return nil
}
