// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/shard"
)

const (
	moverWindow = 256 // messages on their way from one queue
	maxHops     = 4
	moveRetry   = time.Second
)

// reasonHops is why a message that was forwarded too often is a dead letter.
const reasonHops = "MaxTransferHopCountExceeded"

// movers are the broker's own consumers: they forward what is to be forwarded and
// publish what a topic has held.
type movers struct {
	b    *Broker
	wake chan struct{} // capacity 1: look again

	mu      sync.Mutex
	sources map[source]*mover // guarded by mu
	inbox   []moved           // guarded by mu; bounded by the movers' windows
}

// source is a queue that is moved from.
type source struct {
	n    *node
	part shard.Part
}

// moved is a message on its way.
type moved struct {
	m *mover
	d Delivery
}

func newMovers(b *Broker) *movers {
	return &movers{b: b, wake: make(chan struct{}, 1), sources: make(map[source]*mover)}
}

// watch starts and stops the movers of a node as its definition asks.
func (ms *movers) watch(n *node) {
	def := n.def.Load()
	ms.set(source{n, shard.Main}, n.kind == KindTopic || def.queue.ForwardTo != "")
	ms.set(source{n, shard.DeadLetter}, def.queue.ForwardDeadLetteredMessagesTo != "")
}

// unwatch stops the movers of a node that is gone.
func (ms *movers) unwatch(n *node) {
	ms.set(source{n, shard.Main}, false)
	ms.set(source{n, shard.DeadLetter}, false)
}

func (ms *movers) set(src source, wanted bool) {
	ms.mu.Lock()
	m, running := ms.sources[src]
	switch {
	case wanted && !running:
		m = &mover{ms: ms, source: src}
		ms.sources[src] = m
	case !wanted && running:
		delete(ms.sources, src)
	}
	ms.mu.Unlock()
	switch {
	case wanted && !running:
		m.start()
	case !wanted && running:
		m.stop()
	}
}

// run moves messages until ctx ends.
func (ms *movers) run(ctx context.Context) {
	for {
		select {
		case <-ms.wake:
		case <-ctx.Done():
			return
		}
		ms.mu.Lock()
		inbox := ms.inbox
		ms.inbox = nil
		ms.mu.Unlock()
		for i := range inbox {
			inbox[i].m.move(&inbox[i].d)
		}
	}
}

// mover moves messages out of one queue. It is a Sink.
type mover struct {
	ms *movers
	source

	mu      sync.Mutex
	c       *shard.Consumer // guarded by mu; nil until attached
	stopped bool            // guarded by mu
	done    uint64          // guarded by mu; messages dealt with
}

func (m *mover) start() {
	// A shard that has stopped moves nothing.
	_ = m.n.shard.Attach(shard.Attachment{ID: m.n.id, Part: m.part, Sink: m}, func(c *shard.Consumer, err error) {
		if err != nil {
			return
		}
		m.mu.Lock()
		m.c = c
		stopped := m.stopped
		m.mu.Unlock()
		if stopped {
			_ = c.Detach()
			return
		}
		_ = c.Allow(moverWindow)
	})
}

func (m *mover) stop() {
	m.mu.Lock()
	m.stopped = true
	c := m.c
	m.mu.Unlock()
	if c != nil {
		_ = c.Detach()
	}
}

// Deliver implements Sink.
func (m *mover) Deliver(ds []Delivery) {
	m.ms.mu.Lock()
	for _, d := range ds {
		m.ms.inbox = append(m.ms.inbox, moved{m, d})
	}
	m.ms.mu.Unlock()
	select {
	case m.ms.wake <- struct{}{}:
	default: // a look is due
	}
}

// Drained implements Sink.
func (m *mover) Drained() {}

// Ended implements Sink.
func (m *mover) Ended(error) {}

// next lets another message come.
func (m *mover) next() {
	m.mu.Lock()
	m.done++
	total, c := m.done+moverWindow, m.c
	m.mu.Unlock()
	_ = c.Allow(total)
}

// move takes one message to where it belongs.
func (m *mover) move(d *Delivery) {
	msg, err := d.Message()
	if err != nil {
		m.next() // settled by somebody else, or unreadable and left where it is
		return
	}
	b := m.ms.b
	if m.n.kind == KindTopic {
		m.send(m.n, d, msg, d.Hops) // to publish what was held is no hop
		return
	}
	def := m.n.def.Load()
	to := def.queue.ForwardTo
	if m.part == shard.DeadLetter {
		to = def.queue.ForwardDeadLetteredMessagesTo
		msg = sourced(msg, entity.Path{Entity: m.n.path}.String())
	}
	if d.Hops >= maxHops {
		m.setAside(d, msg, reasonHops, fmt.Sprintf("forwarded %d times; %q would be one more", d.Hops, to))
		return
	}
	target, err := b.writable(to)
	if err != nil {
		m.bury(d, msg, "ForwardingFailed", err.Error())
		return
	}
	m.send(target, d, msg, d.Hops+1)
}

// send stores the message at its target. In the same shard that and its removal
// here are one group; otherwise it is removed when it is safe there.
func (m *mover) send(target *node, d *Delivery, msg *message.Message, hops uint8) {
	var settled shard.Locked
	if target.shard == m.n.shard {
		settled = shard.Locked{ID: m.n.id, Part: m.part, Token: d.Token}
	}
	token := d.Token
	o := sendOptions{settle: settled, hops: hops, held: target == m.n}
	m.ms.b.store(target, []*message.Message{msg}, o, func(_ []queue.SeqNo, err error) {
		switch {
		case err == nil && settled != (shard.Locked{}):
			m.next()
		case err == nil:
			settle(m.n, m.part, []queue.Token{token}, Outcome{Verdict: Complete}, func([]error) { m.next() })
		case errors.Is(err, ErrStopping):
		case errors.Is(err, ErrTooLarge), errors.Is(err, ErrSessionRequired), errors.Is(err, ErrNotFound), errors.Is(err, ErrDisabled):
			m.bury(d, msg, "ForwardingFailed", err.Error())
		default:
			m.retry(token)
		}
	})
}

// retry gives the message back after a while.
func (m *mover) retry(token queue.Token) {
	time.AfterFunc(moveRetry, func() {
		settle(m.n, m.part, []queue.Token{token}, Outcome{Verdict: Release}, func([]error) { m.next() })
	})
}

// bury moves a message that cannot be forwarded to the transfer dead letters. A
// dead letter stays where it is and is tried again.
func (m *mover) bury(d *Delivery, msg *message.Message, reason, description string) {
	if m.part == shard.DeadLetter {
		m.retry(d.Token)
		return
	}
	m.setAside(d, msg, reason, description)
}

// setAside moves a message that can never be forwarded to the transfer dead
// letters.
func (m *mover) setAside(d *Delivery, msg *message.Message, reason, description string) {
	dead, err := message.Parse(msg.Edit(reasons(reason, description)))
	if err != nil {
		dead = msg
	}
	a := queue.Arrival{Level: d.Level, Class: d.Class, At: d.EnqueuedAt, Since: d.Since, Origin: d.Origin, Failures: d.Failures, Hops: d.Hops}
	a.Session, a.InSession = d.Session, d.InSession
	token := d.Token
	err = m.n.shard.Send(&shard.Send{
		Bodies: []*message.Message{dead},
		Copies: []shard.Copy{{ID: m.n.id, Part: shard.TransferDeadLetter, Arrival: a}},
		Settle: shard.Locked{ID: m.n.id, Part: m.part, Token: token},
		Done: func(_ []queue.SeqNo, err error) {
			if err != nil {
				m.retry(token)
				return
			}
			m.next()
		},
	})
	if err != nil {
		m.retry(token)
	}
}

// sourced notes in a forwarded dead letter where it came from.
func sourced(m *message.Message, path string) *message.Message {
	out, err := message.Parse(m.Edit(message.Edit{Annotations: []message.Change{
		{Name: "x-opt-deadletter-source", Value: codec.String(path)},
	}}))
	if err != nil {
		return m
	}
	return out
}
