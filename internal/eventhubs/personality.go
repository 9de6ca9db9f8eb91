// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/broker"
)

// Personality is what event hubs are on the wire.
type Personality struct{ broker *broker.Broker }

// New returns the personality of b's event hubs.
func New(b *broker.Broker) *Personality { return &Personality{b} }

// Find returns the ID of the hub that a path names, or is a part of.
func (p *Personality) Find(path string) (id uint64, err error) {
	h, err := p.broker.HubInfo(path)
	return h.ID, err
}

// ServesNamespace reports that requests at the node of the namespace name their hub:
// clients send all of them there.
func (p *Personality) ServesNamespace() bool { return true }

// Conditions are how errors of hubs are reported to peers.
func (p *Personality) Conditions() []condition.Condition { return conditions }

// Open returns what a connection has of this personality.
func (p *Personality) Open(c *azure.Conn) azure.Links {
	return &links{Conn: c, broker: p.broker}
}

// links is what one connection has of Event Hubs. It belongs to the connection's context,
// except what says otherwise.
type links struct {
	*azure.Conn
	broker *broker.Broker

	receivers atomic.Int64 // how many there are; read on any goroutine
	held      atomic.Int64 // what is charged for events on their way; changed on any goroutine

	members map[memberKey]*member // of consumer groups, that have joined on this connection
	joining int                   // how many links of members there are
}

// Attach attaches a sender or receiver to a hub.
func (c *links) Attach(l *endpoint.Link, path string) error {
	if l.Remote().Role == frame.Sender { // from the peer's side
		return c.attachSender(l, path)
	}
	if isMember(l.Remote()) {
		return c.attachMember(l, path)
	}
	return c.attachReceiver(l, path)
}

// OpenSender opens the way to a hub for events to the anonymous terminus.
func (c *links) OpenSender(path string) (azure.Sender, error) {
	to, err := c.broker.OpenPublisher(path)
	if err != nil {
		return nil, err
	}
	return &messageSender{to}, nil
}

// Operation returns the operation of that name.
func (c *links) Operation(name string) (azure.Operation, bool) {
	if name == names.Read {
		return c.readOperation(), true
	}
	o, ok := groupOperations[name]
	return o.operation(c, name), ok
}

// Stop has nothing to do: the goroutines of receivers and members end with the context of the
// connection.
func (c *links) Stop() {}

// Closed gives back what events are still charged with.
func (c *links) Closed() { c.Memory().Release(c.held.Swap(0)) }
