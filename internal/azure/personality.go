// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/message"
)

// Personality is what entities of some kinds are on the wire: their links, their
// operations and their errors. The entity that a link or a request names decides which
// personality serves it, so one connection may use several. An address that names no
// entity is served by the first personality, which says so.
type Personality interface {
	// Find returns the ID of the entity that a path names: it tells the entity from
	// others that have its name before or after it, and is not zero. If the path is
	// none of this personality's, the error is a broker.ErrNotFound. Find may be called
	// on any goroutine.
	Find(path string) (id uint64, err error)

	// ServesNamespace reports whether there are operations at the $management node of
	// the namespace that say themselves which entity they are about; see
	// Operation.Entity. Every peer that has authenticated may attach there then.
	ServesNamespace() bool

	// Conditions are how the personality's own errors are reported to peers.
	Conditions() []condition.Condition

	// Open returns what a connection has of this personality, when it first needs it.
	Open(c *Conn) Links
}

// Links is what one connection has of one personality. All of it is called in the
// connection's context, but for Closed.
type Links interface {
	// Attach attaches a link to the entity at a path. It answers with Link.Accept, now
	// or later, after Conn.Attached; or refuses by an error. It checks the peer's
	// rights with Conn.Require before it tells anything about the entity.
	Attach(l *endpoint.Link, path string) error

	// OpenSender opens the way to an entity for messages that name it themselves. The
	// right to send was checked.
	OpenSender(path string) (Sender, error)

	// Operation returns the operation of that name; false if there is none.
	Operation(name string) (Operation, bool)

	// Stop is called when the connection is over. What Conn.Go runs has to end soon
	// after it.
	Stop()

	// Closed is the last call, when nothing that Conn.Go ran is left and the last event
	// was handled.
	Closed()
}

// Sender stores messages in an entity.
type Sender interface {
	// Send stores messages all or none, and calls done on any goroutine when that is
	// durable.
	Send(ms []*message.Message, done func(error))
	Close()
}

// Operation is what a request to a $management node asks for.
type Operation struct {
	// Needs is the right to the entity that the operation needs.
	Needs access.Rights
	// LargeReply says that the reply may hold messages, states or lists: memory for it
	// is charged before it is made.
	LargeReply bool
	// AnyBody says that the body need not be a map.
	AnyBody bool
	// Entity returns the path of the entity that a request at the node of the namespace
	// is about. It is nil if the operation is always about the entity of its node.
	Entity func(k *Call) string
	// Begin looks at the request in the connection's context, after its sender's rights
	// were checked, and returns what to run.
	Begin func(k *Call) (Run, error)
}

// Run does what a request asks for, away from the connection, and returns the body of
// the reply: a map with at least one key, or null if there is nothing to return.
type Run func(ctx context.Context) (codec.Value, error)
