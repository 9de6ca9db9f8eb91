// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"maps"
	"slices"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/queue"
)

// Sessions are the sessions that the receivers of a connection hold. It is asked in the
// connection's context.
type Sessions interface {
	// HeldSession returns the lock on a session of the entity at a path. A link that is
	// named must be the one that holds it.
	HeldSession(path, id, link string) (lock queue.SessionLock, ok bool)
	// HeldSessions returns the locks on all sessions of the entity at a path.
	HeldSessions(path string) []queue.SessionLock
}

// call is a request with what its operation needs.
type call struct {
	*azure.Call
	broker  *broker.Broker
	session queue.SessionLock // that the request is about, if the operation is fenced
	// held are the sessions of the entity that the connection holds.
	held []queue.SessionLock
	// sources are those that a pool names and its sender may listen to, and so is what it
	// is beside.
	sources, beside []string
}

// operation is one entry of the table of operations.
type operation struct {
	run        func(ctx context.Context, k *call) (codec.Value, error)
	fenced     fence
	largeReply bool // it holds messages, states or rules
}

// fence says what of an operation needs to be checked in the connection's context. Mostly
// these are sessions, which belong to the receiver that holds them.
type fence uint8

const (
	unfenced  fence = iota
	bySession       // it acts on the session that it names, if it does
	byToken         // it acts on messages, which may be in sessions
	bySources       // it is about several entities, of which its sender may listen to some
)

// operations are those of the service, and two of ours, by the name in the request.
var operations = map[string]operation{
	names.RenewLock:               {renewLock, byToken, false},
	names.UpdateDisposition:       {updateDisposition, byToken, false},
	names.PeekMessage:             {peekMessage, unfenced, true},
	names.ReceiveBySequenceNumber: {receiveBySequenceNumber, bySession, true},
	names.BatchDeleteMessages:     {batchDeleteMessages, unfenced, false},
	names.ScheduleMessage:         {scheduleMessage, unfenced, false},
	names.CancelScheduledMessage:  {cancelScheduledMessage, unfenced, false},
	names.RenewSessionLock:        {renewSessionLock, bySession, false},
	names.GetSessionState:         {sessionState, bySession, true},
	names.SetSessionState:         {setSessionState, bySession, false},
	names.GetMessageSessions:      {messageSessions, unfenced, true},
	names.AddRule:                 {addRule, unfenced, false},
	names.RemoveRule:              {removeRule, unfenced, false},
	names.EnumerateRules:          {enumerateRules, unfenced, true},
	names.AnnouncePool:            {announcePool, bySources, false}, // ours
	names.SaveState:               {saveState, byToken, false},      // ours
}

// Names returns the names of all operations.
func Names() []string { return slices.Collect(maps.Keys(operations)) }

// Operation returns the operation of that name, for a connection whose receivers hold
// these sessions; false if there is none.
func Operation(name string, b *broker.Broker, sessions Sessions) (azure.Operation, bool) {
	op, ok := operations[name]
	if !ok {
		return azure.Operation{}, false
	}
	needs, _ := access.OfRequest(name)
	return azure.Operation{
		Needs:      needs,
		LargeReply: op.largeReply,
		Begin: func(k *azure.Call) (azure.Run, error) {
			sk := &call{Call: k, broker: b}
			if err := op.fence(sk, sessions); err != nil {
				return nil, err
			}
			return func(ctx context.Context) (codec.Value, error) { return op.run(ctx, sk) }, nil
		},
	}, true
}

// propAssociatedLink names the receiver's link that a request is made for.
const propAssociatedLink = names.AssociatedLink

// heldCost is what a session takes that a request names by a token: its lock, in a list
// that has grown.
const heldCost = 48

// fence finds the sessions or sources that the request is about, and refuses it if its
// sender does not hold the session that it names.
func (op *operation) fence(k *call, sessions Sessions) error {
	switch id := k.Text("session-id"); {
	case op.fenced == bySources:
		return k.poolSources()
	case op.fenced == byToken:
		k.held = sessions.HeldSessions(k.Entity())
		if !k.Hold(heldCost * int64(len(k.held))) {
			return azure.ErrNoMemory
		}
	case op.fenced == bySession && id != nil:
		if err := limits.CheckText("session id", *id, limits.Name); err != nil {
			return err
		}
		var ok bool
		if k.session, ok = sessions.HeldSession(k.Entity(), *id, k.Property(propAssociatedLink)); !ok {
			return broker.ErrSessionLockLost
		}
	}
	return nil
}

// tokens returns lock tokens, which travel as UUIDs.
func (k *call) tokens(name string) ([]queue.Token, error) {
	vs, err := k.List(name)
	if err != nil {
		return nil, err
	}
	tokens := make([]queue.Token, len(vs))
	for i, v := range vs {
		id, ok := v.UUID()
		if !ok {
			return nil, azure.BadArgument(name, "an array of uuids")
		}
		tokens[i] = queue.TokenFrom(id)
	}
	return tokens, nil
}

// numbers returns sequence numbers.
func (k *call) numbers(name string) ([]queue.SeqNo, error) {
	vs, err := k.List(name)
	if err != nil {
		return nil, err
	}
	seqs := make([]queue.SeqNo, len(vs))
	for i, v := range vs {
		n, ok := wire.Integer(v)
		if !ok || n < 0 {
			return nil, azure.BadArgument(name, "an array of sequence numbers")
		}
		seqs[i] = queue.SeqNo(n)
	}
	return seqs, nil
}
