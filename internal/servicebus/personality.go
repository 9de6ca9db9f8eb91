// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/servicebus/management"
)

// Personality is what queues, topics and subscriptions are on the wire.
type Personality struct{ broker *broker.Broker }

// New returns the personality of b's entities.
func New(b *broker.Broker) *Personality { return &Personality{b} }

// Find returns the ID of the queue, topic or subscription that a path names.
func (p *Personality) Find(path string) (id uint64, err error) {
	a, err := p.broker.Resolve(path)
	if err != nil {
		return 0, err
	}
	switch a.Kind {
	case broker.KindQueue, broker.KindTopic, broker.KindSubscription:
		return a.ID, nil
	}
	return 0, fmt.Errorf("%w: %q is of another kind", broker.ErrNotFound, path)
}

// ServesNamespace reports that every operation is about the entity of its node.
func (p *Personality) ServesNamespace() bool { return false }

// Conditions are how errors of queues and sessions are reported to peers.
func (p *Personality) Conditions() []condition.Condition { return conditions }

// Open returns what a connection has of this personality.
func (p *Personality) Open(c *azure.Conn) azure.Links {
	ls := &links{
		Conn:      c,
		broker:    p.broker,
		receivers: map[*receiver]struct{}{},
		opening:   map[*receiver]struct{}{},
		unsent:    map[*receiver]struct{}{},
	}
	ls.loader.init(ls)
	return ls
}

// links is what one connection has of Service Bus. It belongs to the connection's
// context, except what has a lock.
type links struct {
	*azure.Conn
	broker *broker.Broker
	loader loader

	receivers map[*receiver]struct{} // that are attached
	// opening holds the receivers whose broker end is not in our hands yet.
	opening map[*receiver]struct{}
	// unsent holds the receivers with deliveries that never left.
	unsent map[*receiver]struct{}
}

// Attach attaches a sender or receiver to an entity, or a receiver to its recalls.
func (c *links) Attach(l *endpoint.Link, path string) error {
	switch sends := l.Remote().Role == frame.Sender; { // from the peer's side
	case sends:
		return c.attachSender(l, path)
	case isRecall(l.Address()):
		return c.attachRecalls(l)
	}
	return c.attachReceiver(l, path)
}

// OpenSender opens the way to an entity for messages to the anonymous terminus.
func (c *links) OpenSender(path string) (azure.Sender, error) {
	s, err := c.broker.OpenSender(path, c.Sending())
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Operation returns the operation of that name.
func (c *links) Operation(name string) (azure.Operation, bool) {
	return management.Operation(name, c.broker, c)
}

// Stop makes the loader give back what still comes.
func (c *links) Stop() { c.loader.close() }

// Closed gives back what links were given and the peer was not sent.
func (c *links) Closed() {
	for r := range c.opening {
		r.close()
	}
	for r := range c.unsent {
		r.giveBack()
	}
	c.loader.release()
}

// HeldSession returns the lock on a session that one of the connection's receivers
// holds. SDKs name the link of the receiver that a request is made for: if it has
// lost the session, the request is refused also when another link has it by now. A
// client that names none speaks for whichever of its links has the session.
func (c *links) HeldSession(path, id, link string) (held queue.SessionLock, ok bool) {
	for r := range c.receivers {
		if r.path != path || link != "" && r.link.Name() != link {
			continue
		}
		from, isOpen := r.brokerReceiver().(*broker.Receiver)
		if !isOpen || !r.session.asked {
			continue
		}
		// A link that has just lost the session may still be there: the later counts.
		if l := from.SessionLock(); l.ID == id && (!ok || l.Nonce > held.Nonce) {
			held, ok = l, true
		}
	}
	return held, ok
}

// HeldSessions returns the locks on all sessions of an entity that the connection's
// receivers hold.
func (c *links) HeldSessions(path string) []queue.SessionLock {
	var held []queue.SessionLock
	for r := range c.receivers {
		if r.session.asked && r.path == path {
			if from, ok := r.brokerReceiver().(*broker.Receiver); ok {
				held = append(held, from.SessionLock())
			}
		}
	}
	return held
}
