// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"context"
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/queue"
)

// everySession is the time by which clients ask for all sessions with active
// messages: the first instant after the last that .NET knows.
const everySession = 253402300800000

// propAssociatedLink names the receiver's link that a request is made for.
const propAssociatedLink = "associated-link-name"

// heldSession returns the lock on a session that one of the connection's receivers
// holds. SDKs name the link of the receiver that a request is made for: if it has
// lost the session, the request is refused also when another link has it by now. A
// client that names none speaks for whichever of its links has the session.
func (c *conn) heldSession(path, id, link string) (held queue.SessionLock, ok bool) {
	for _, n := range c.links {
		r, isReceiver := n.(*receiver)
		if !isReceiver || r.path != path || link != "" && r.link.Name() != link {
			continue
		}
		from, isOpen := r.origin().(*broker.Receiver)
		if !isOpen || !r.wish.asked {
			continue
		}
		// A link that has just lost the session may still be there: the later counts.
		if l := from.SessionLock(); l.ID == id && (!ok || l.Nonce > held.Nonce) {
			held, ok = l, true
		}
	}
	return held, ok
}

// heldSessions returns the locks on all sessions of an entity that the connection's
// receivers hold.
func (c *conn) heldSessions(path string) []queue.SessionLock {
	var held []queue.SessionLock
	for _, n := range c.links {
		if r, ok := n.(*receiver); ok && r.wish.asked && r.path == path {
			if from, ok := r.origin().(*broker.Receiver); ok {
				held = append(held, from.SessionLock())
			}
		}
	}
	return held
}

func renewSessionLock(ctx context.Context, k *call) (codec.Value, error) {
	if _, err := k.mustText("session-id"); err != nil {
		return codec.Value{}, err
	}
	until, err := k.c.svc.broker.RenewSession(ctx, k.entity, k.session)
	if err != nil {
		return codec.Value{}, err
	}
	return result("expiration", codec.Timestamp(until)), nil
}

// sessionState answers with the key in any case: clients look it up unasked.
func sessionState(ctx context.Context, k *call) (codec.Value, error) {
	if _, err := k.mustText("session-id"); err != nil {
		return codec.Value{}, err
	}
	state, err := k.c.svc.broker.SessionState(ctx, k.entity, k.session)
	if err != nil {
		return codec.Value{}, err
	}
	value := codec.Value{}
	if state != nil {
		value = codec.Binary(state)
	}
	return result("session-state", value), nil
}

func setSessionState(ctx context.Context, k *call) (codec.Value, error) {
	if _, err := k.mustText("session-id"); err != nil {
		return codec.Value{}, err
	}
	v, _ := k.body.Lookup("session-state")
	state, ok := v.Bytes()
	if !ok && !v.IsNull() {
		return codec.Value{}, badArgument("session-state", "binary or null")
	}
	if len(state) == 0 {
		state = nil // the Go SDK clears a state by an empty one
	}
	return dummy, k.c.svc.broker.SetSessionState(ctx, k.entity, k.session, state)
}

func messageSessions(ctx context.Context, k *call) (codec.Value, error) {
	since, err := k.time("last-updated-time")
	if err != nil {
		return codec.Value{}, err
	}
	skip, err := k.count("skip", math.MaxInt32)
	if err != nil {
		return codec.Value{}, err
	}
	top, err := k.count("top", limits.PeekedMessages)
	if err != nil {
		return codec.Value{}, err
	}
	if since.UnixMilli() >= everySession-1 {
		since = time.Time{}
	}
	ids, err := k.c.svc.broker.Sessions(ctx, k.entity, since, skip, top)
	if err != nil {
		return codec.Value{}, err
	}
	if len(ids) == 0 {
		return codec.Value{}, endpoint.Errorf(condSessionNotFound, "session not found")
	}
	return result("skip", codec.Int(int32(skip+len(ids))),
		"sessions-ids", codec.Raw(codec.AppendStringArray(nil, ids))), nil
}
