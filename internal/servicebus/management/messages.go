// SPDX-License-Identifier: Apache-2.0

package management

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// dispositions by the words of update-disposition; "defered" is how the service
// spells it.
var dispositions = map[string]broker.Disposition{
	"completed": broker.Complete,
	"abandoned": broker.Abandon,
	"suspended": broker.DeadLetter,
	"defered":   broker.Defer,
	"deferred":  broker.Defer,
	"released":  broker.Release,
}

func renewLock(ctx context.Context, k *call) (codec.Value, error) {
	tokens, err := k.tokens("lock-tokens")
	if err != nil {
		return codec.Value{}, err
	}
	renew := k.broker.Renew
	v, _ := k.Body().Lookup(names.DurableRenew)
	if durable, _ := v.Bool(); durable {
		renew = k.broker.RenewDurably
	}
	until, err := renew(ctx, k.Entity(), tokens, k.held...)
	if err != nil {
		return codec.Value{}, err
	}
	// An array: the Go SDK does not take a list.
	return wire.Result("expirations", codec.Raw(codec.AppendTimestampArray(nil, until))), nil
}

func updateDisposition(ctx context.Context, k *call) (codec.Value, error) {
	tokens, err := k.tokens("lock-tokens")
	if err != nil {
		return codec.Value{}, err
	}
	word, err := k.MustText("disposition-status")
	if err != nil {
		return codec.Value{}, err
	}
	disposition, ok := dispositions[word]
	if !ok {
		return codec.Value{}, azure.BadArgument("disposition-status", "completed, abandoned, suspended or defered")
	}
	if v, _ := k.Body().Lookup(names.Uncounted); disposition == broker.Abandon {
		if yes, _ := v.Bool(); yes {
			disposition = broker.Release
		}
	}
	o := broker.Outcome{Disposition: disposition}
	if v, ok := k.Body().Lookup(names.RetryAfter); ok {
		if o.RetryAfter, err = RetryAfter(v); err != nil {
			return codec.Value{}, err
		}
	}
	if reason := k.Text("deadletter-reason"); reason != nil {
		o.Reason = strings.Clone(*reason) // here and below, not to keep the request
	}
	if description := k.Text("deadletter-description"); description != nil {
		o.Description = strings.Clone(*description)
	}
	changes, _ := k.Body().Lookup("properties-to-modify")
	encoded := codec.AppendValue(nil, changes)
	if changes, err = codec.ParseValue(encoded); err != nil {
		return codec.Value{}, err
	}
	o.Properties = Changes(changes)
	charge := int64(settledCost*len(tokens) + ChangeCost*len(o.Properties) + len(encoded) + len(o.Reason) + len(o.Description))
	if !k.Conn().Memory().TryTake(charge) {
		return codec.Value{}, azure.ErrNoMemory
	}
	release := func() { k.Conn().Memory().Release(charge) }
	return wire.Done, k.broker.SettleThen(ctx, k.Entity(), tokens, o, release, k.held...)
}

// saveState keeps a state beside a locked message.
func saveState(ctx context.Context, k *call) (codec.Value, error) {
	v, _ := k.Body().Lookup(names.SavedToken)
	id, ok := v.UUID()
	if !ok {
		return codec.Value{}, azure.BadArgument(names.SavedToken, "a uuid")
	}
	v, _ = k.Body().Lookup(names.SavedState)
	state, ok := v.Bytes()
	if !ok {
		return codec.Value{}, azure.BadArgument(names.SavedState, "binary")
	}
	until, err := k.broker.SaveState(ctx, k.Entity(), queue.TokenFrom(id), bytes.Clone(state), k.held...)
	if err != nil {
		return codec.Value{}, err
	}
	return wire.Result(names.SavedUntil, codec.Timestamp(until)), nil
}

const (
	// settledCost is what a message takes that is being settled: its token, which is there twice,
	// and why it was not.
	settledCost = 64
	// ChangeCost is what a change to a property takes beside its bytes: a name of three and a
	// null of one byte become this much.
	ChangeCost = 128
)

func peekMessage(ctx context.Context, k *call) (codec.Value, error) {
	v, _ := k.Body().Lookup("from-sequence-number")
	from, ok := wire.Integer(v)
	if !ok {
		return codec.Value{}, azure.BadArgument("from-sequence-number", "a number")
	}
	most, err := k.Count("message-count", limits.PeekedMessages)
	if err != nil {
		return codec.Value{}, err
	}
	ds, err := k.broker.Peek(ctx, k.Entity(), queue.SeqNo(max(from, 0)), most, k.Text("session-id"))
	if err != nil {
		return codec.Value{}, err
	}
	stamp := peekedStamp
	if v, ok := k.Body().Lookup(names.TellLevel); ok {
		if tell, ok := v.Bool(); ok && tell {
			stamp = toldStamp
		}
	}
	return k.messagesOf(ds, k.ReplyLimit(), stamp)
}

func receiveBySequenceNumber(ctx context.Context, k *call) (codec.Value, error) {
	seqs, err := k.numbers("sequence-numbers")
	if err != nil {
		return codec.Value{}, err
	}
	mode := broker.PeekLock
	if v, ok := k.Body().Lookup("receiver-settle-mode"); ok {
		if n, ok := wire.Integer(v); ok && n == 0 {
			mode = broker.ReceiveAndDelete
		}
	}
	ds, err := k.broker.ReceiveDeferred(ctx, k.Entity(), seqs,
		broker.Deferred{Mode: mode, Session: k.session, MaxBytes: k.ReplyLimit()})
	if err != nil {
		return codec.Value{}, err
	}
	kept := int64(0)
	if mode == broker.ReceiveAndDelete { // they are not in the journal any more
		for i := range ds {
			kept += ds[i].Size()
		}
	}
	k.OnLost(func() { broker.Return(ds) }, kept)
	return k.messagesOf(ds, math.MaxInt, func(d *broker.Delivery, m *message.Message) message.BrokerProperties {
		k.broker.NoteDelivered(k.Entity(), k.Conn().Sending().Key, d, m)
		s := StampOf(d, mode)
		s.State = message.StateDeferred
		return s
	})
}

func peekedStamp(d *broker.Delivery, _ *message.Message) message.BrokerProperties {
	s := StampOf(d, broker.ReceiveAndDelete) // no lock to tell of
	switch {
	case d.State == queue.Deferred || d.Deferred: // also while it is locked
		s.State = message.StateDeferred
	case d.State == queue.Scheduled:
		s.State = message.StateScheduled
	default:
		s.State = message.StateActive
	}
	if d.State == queue.Retrying {
		s.RetryAt = d.NotBefore
	}
	return s
}

// toldStamp tells, beyond what Service Bus does, the level of a message and whether it is
// locked.
func toldStamp(d *broker.Delivery, m *message.Message) message.BrokerProperties {
	s := peekedStamp(d, m)
	s.Level, s.HasLevel = uint8(d.Level), true
	if d.State == queue.Locked {
		s.LockedUntil = d.LockedUntil
	}
	return s
}

// perMessage is about what a message takes in a reply besides its bytes: the broker's
// annotations, an id if it has none, the map around it.
const perMessage = 512

// messagesOf makes a reply with messages, as many as most bytes hold but at least one; null
// when there is none. The messages are written where they stay. What they take beyond what
// was reserved for the reply is charged before they are read.
func (k *call) messagesOf(ds []broker.Delivery, most int, stamp func(*broker.Delivery, *message.Message) message.BrokerProperties) (codec.Value, error) {
	ds, space := fitting(ds, most)
	var r messagesReply
	for i := range ds {
		d := &ds[i]
		if err := k.ReserveFor(max(space, int(d.Size())+perMessage)); err != nil {
			return codec.Value{}, err
		}
		m, err := d.Message()
		if errors.Is(err, queue.ErrNotFound) {
			continue // settled since
		}
		if err != nil {
			return codec.Value{}, err
		}
		need := m.Size() + perMessage
		if r.n > 0 && len(r.b)+need > most {
			break // the client asks again
		}
		if r.b == nil {
			r.begin(k.BeginReply(max(space, need)))
		}
		r.append(m, stamp(d, m))
		d.Unload()
	}
	if r.n == 0 {
		return codec.Value{}, nil
	}
	return k.EndReply(r.end()), nil
}

// fitting returns the deliveries at the front of ds that fit into most bytes, at least one
// if there is any, and what they take.
func fitting(ds []broker.Delivery, most int) (fit []broker.Delivery, space int) {
	for i := range ds {
		n := int(ds[i].Size()) + perMessage
		if i > 0 && n > most-space {
			return ds[:i], space
		}
		space += n
	}
	return ds, space
}

// messagesReply is a reply with messages that is being written.
type messagesReply struct {
	b           []byte
	whole, list codec.Mark
	n           int // messages
}

func (r *messagesReply) begin(b []byte) {
	b, r.whole = codec.BeginMap(b)
	r.b, r.list = codec.BeginList(codec.AppendString(b, "messages"))
}

func (r *messagesReply) append(m *message.Message, s message.BrokerProperties) {
	b, entry := codec.BeginMap(r.b)
	b, content := codec.BeginBinary(codec.AppendString(b, "message"))
	b = codec.EndBinary(message.AppendDelivery(b, m, s), content)
	pairs := 1
	if s.HasLock {
		b = codec.AppendUUID(codec.AppendString(b, "lock-token"), s.LockToken)
		pairs++
	}
	r.b = codec.EndMap(b, entry, pairs)
	r.n++
}

func (r *messagesReply) end() []byte {
	return codec.EndMap(codec.EndList(r.b, r.list, r.n), r.whole, 1)
}

// messagesIn returns the messages of a request, and how many bytes they have.
func messagesIn(k *call, entries []codec.Value) (ms []*message.Message, size int, err error) {
	defer k.broker.TurnFor(k.Entity(), len(entries)).End()
	ms = make([]*message.Message, len(entries))
	for i, e := range entries {
		v, _ := e.Lookup("message")
		raw, ok := v.Bytes()
		if !ok {
			return nil, 0, azure.BadArgument("messages", "a list of maps with a message")
		}
		if ms[i], err = message.Parse(bytes.Clone(raw)); err != nil { // not to keep the request with it
			return nil, 0, err
		}
		size += len(raw)
	}
	return ms, size, nil
}

func scheduleMessage(ctx context.Context, k *call) (codec.Value, error) {
	entries, err := k.List("messages")
	if err != nil {
		return codec.Value{}, err
	}
	ms, size, err := messagesIn(k, entries)
	if err != nil {
		return codec.Value{}, err
	}
	charge := broker.Unsynced(size, len(ms))
	if err := k.Conn().Unsynced().Take(ctx, charge); err != nil {
		return codec.Value{}, fmt.Errorf("%w: too much waits for the disk", broker.ErrBusy)
	}
	release := func() { k.Conn().Unsynced().Release(charge) }
	if err := k.Still(); err != nil { // it may have waited for that
		release()
		return codec.Value{}, err
	}
	seqs, err := k.broker.ScheduleThen(ctx, k.Entity(), ms, k.Conn().Sending(), release)
	if err != nil {
		return codec.Value{}, err
	}
	numbers := make([]int64, len(seqs))
	for i, s := range seqs {
		numbers[i] = int64(s)
	}
	return wire.Result("sequence-numbers", codec.Raw(codec.AppendLongArray(nil, numbers))), nil
}

func cancelScheduledMessage(ctx context.Context, k *call) (codec.Value, error) {
	seqs, err := k.numbers("sequence-numbers")
	if err != nil {
		return codec.Value{}, err
	}
	return wire.Done, k.broker.CancelScheduled(ctx, k.Entity(), seqs)
}

func batchDeleteMessages(ctx context.Context, k *call) (codec.Value, error) {
	most, err := k.Count("message-count", limits.Deleted)
	if err != nil {
		return codec.Value{}, err
	}
	before, err := k.Time("enqueued-time-utc")
	if err != nil {
		return codec.Value{}, err
	}
	if most == 0 || before.IsZero() { // both of which mean all of them to the broker
		return codec.Value{}, nil
	}
	n, err := k.broker.DeleteMessages(ctx, k.Entity(), before, most)
	if err != nil || n == 0 {
		return codec.Value{}, err
	}
	return wire.Result("message-count", codec.Int(int32(n))), nil
}
