// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/limits"
)

// everySession is the time by which clients ask for all sessions with active
// messages: the first instant after the last that .NET knows.
const everySession = 253402300800000

func renewSessionLock(ctx context.Context, k *call) (codec.Value, error) {
	if _, err := k.MustText("session-id"); err != nil {
		return codec.Value{}, err
	}
	until, err := k.broker.RenewSession(ctx, k.Entity(), k.session)
	if err != nil {
		return codec.Value{}, err
	}
	return wire.Result("expiration", codec.Timestamp(until)), nil
}

// sessionState answers with the key in any case: clients look it up unasked.
func sessionState(ctx context.Context, k *call) (codec.Value, error) {
	if _, err := k.MustText("session-id"); err != nil {
		return codec.Value{}, err
	}
	state, err := k.broker.SessionState(ctx, k.Entity(), k.session)
	if err != nil {
		return codec.Value{}, err
	}
	if err := k.ReserveFor(len(state)); err != nil {
		return codec.Value{}, err
	}
	const around = 64 // the map with its key
	b, whole := codec.BeginMap(k.BeginReply(len(state) + around))
	b = codec.AppendString(b, "session-state")
	if state == nil {
		b = codec.AppendNull(b)
	} else {
		b = codec.AppendBinary(b, state)
	}
	return k.EndReply(codec.EndMap(b, whole, 1)), nil
}

func setSessionState(ctx context.Context, k *call) (codec.Value, error) {
	if _, err := k.MustText("session-id"); err != nil {
		return codec.Value{}, err
	}
	v, _ := k.Body().Lookup("session-state")
	state, ok := v.Bytes()
	if !ok && !v.IsNull() {
		return codec.Value{}, azure.BadArgument("session-state", "binary or null")
	}
	if len(state) == 0 {
		state = nil // the Go SDK clears a state by an empty one
	}
	return wire.Done, k.broker.SetSessionState(ctx, k.Entity(), k.session, state)
}

func messageSessions(ctx context.Context, k *call) (codec.Value, error) {
	since, err := k.Time("last-updated-time")
	if err != nil {
		return codec.Value{}, err
	}
	skip, top, err := k.page()
	if err != nil {
		return codec.Value{}, err
	}
	if since.UnixMilli() >= everySession-1 {
		since = time.Time{}
	}
	ids, err := k.broker.Sessions(ctx, k.Entity(), since, skip, top)
	if err != nil {
		return codec.Value{}, err
	}
	if len(ids) == 0 {
		return codec.Value{}, endpoint.Errorf(names.SessionNotFound, "session not found")
	}
	return wire.Result("skip", codec.Int(int32(skip+len(ids))),
		"sessions-ids", codec.Raw(codec.AppendStringArray(nil, ids))), nil
}

// page returns which entries of a list a request asks for: how many to leave out, and
// how many to return at most.
func (k *call) page() (skip, top int, err error) {
	if skip, err = k.Count("skip", math.MaxInt32); err != nil {
		return 0, 0, err
	}
	top, err = k.Count("top", limits.PeekedMessages)
	return skip, top, err
}
