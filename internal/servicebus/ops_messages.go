// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// verdicts by the words of update-disposition; "defered" is how the service
// spells it.
var verdicts = map[string]broker.Verdict{
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
	until, err := k.c.svc.broker.Renew(ctx, k.entity, tokens, k.held...)
	if err != nil {
		return codec.Value{}, err
	}
	// An array: the Go SDK does not take a list.
	return result("expirations", codec.Raw(codec.AppendTimestampArray(nil, until))), nil
}

func updateDisposition(ctx context.Context, k *call) (codec.Value, error) {
	tokens, err := k.tokens("lock-tokens")
	if err != nil {
		return codec.Value{}, err
	}
	word, err := k.mustText("disposition-status")
	if err != nil {
		return codec.Value{}, err
	}
	verdict, ok := verdicts[word]
	if !ok {
		return codec.Value{}, badArgument("disposition-status", "completed, abandoned, suspended or defered")
	}
	o := broker.Outcome{Verdict: verdict}
	if reason := k.text("deadletter-reason"); reason != nil {
		o.Reason = *reason
	}
	if description := k.text("deadletter-description"); description != nil {
		o.Description = *description
	}
	changes, _ := k.body.Lookup("properties-to-modify")
	o.Properties = changesIn(changes)
	return dummy, k.c.svc.broker.Settle(ctx, k.entity, tokens, o, k.held...)
}

func peekMessage(ctx context.Context, k *call) (codec.Value, error) {
	v, _ := k.body.Lookup("from-sequence-number")
	from, ok := number(v)
	if !ok {
		return codec.Value{}, badArgument("from-sequence-number", "a number")
	}
	most, err := k.count("message-count", limits.PeekedMessages)
	if err != nil {
		return codec.Value{}, err
	}
	ds, err := k.c.svc.broker.Peek(ctx, k.entity, queue.SeqNo(max(from, 0)), most, k.text("session-id"))
	if err != nil {
		return codec.Value{}, err
	}
	return k.messagesOf(ds, k.c.replyLimit(), peekedStamp)
}

func receiveBySequenceNumber(ctx context.Context, k *call) (codec.Value, error) {
	seqs, err := k.numbers("sequence-numbers")
	if err != nil {
		return codec.Value{}, err
	}
	mode := broker.PeekLock
	if v, ok := k.body.Lookup("receiver-settle-mode"); ok {
		if n, ok := number(v); ok && n == 0 {
			mode = broker.ReceiveAndDelete
		}
	}
	ds, err := k.c.svc.broker.ReceiveDeferred(ctx, k.entity, seqs,
		broker.Deferred{Mode: mode, Session: k.session, MaxBytes: k.c.replyLimit()})
	if err != nil {
		return codec.Value{}, err
	}
	k.taken = ds // should the reply not arrive
	return k.messagesOf(ds, math.MaxInt, func(d *broker.Delivery, m *message.Message) message.BrokerProperties {
		k.c.svc.broker.HandedOut(k.entity, k.c.sending.Key, d, m)
		s := stampOf(d, mode)
		s.State = message.StateDeferred
		return s
	})
}

func peekedStamp(d *broker.Delivery, _ *message.Message) message.BrokerProperties {
	s := stampOf(d, broker.ReceiveAndDelete) // no lock to tell of
	switch {
	case d.State == queue.Deferred || d.Deferred: // also while somebody holds it
		s.State = message.StateDeferred
	case d.State == queue.Scheduled:
		s.State = message.StateScheduled
	default:
		s.State = message.StateActive
	}
	return s
}

// messagesOf makes the body of a reply with messages, as many as most bytes hold but
// at least one; null when there is none. One that is larger than what was reserved for the
// reply is charged before it is read.
func (k *call) messagesOf(ds []broker.Delivery, most int, stamp func(*broker.Delivery, *message.Message) message.BrokerProperties) (codec.Value, error) {
	var list []codec.Value
	size := 0
	for i := range ds {
		d := &ds[i]
		if size > 0 && size+int(d.Body.Size) > most {
			break // the client asks again
		}
		if err := k.reserveFor(int(d.Body.Size)); err != nil {
			return codec.Value{}, err
		}
		m, err := d.Message()
		if errors.Is(err, queue.ErrNotFound) {
			continue // settled since
		}
		if err != nil {
			return codec.Value{}, err
		}
		if size > 0 && size+m.Size() > most {
			break // the client asks again
		}
		s := stamp(d, m)
		size += m.Size()
		entry := []any{"message", codec.Binary(message.AppendDelivery(nil, m, s))}
		if s.HasLock {
			entry = append(entry, "lock-token", codec.UUID(s.LockToken))
		}
		list = append(list, result(entry...))
	}
	if len(list) == 0 {
		return codec.Value{}, nil
	}
	return result("messages", codec.List(list...)), nil
}

func scheduleMessage(ctx context.Context, k *call) (codec.Value, error) {
	entries, err := k.list("messages")
	if err != nil {
		return codec.Value{}, err
	}
	ms, size := make([]*message.Message, len(entries)), 0
	for i, e := range entries {
		v, _ := e.Lookup("message")
		raw, ok := v.Bytes()
		if !ok {
			return codec.Value{}, badArgument("messages", "a list of maps with a message")
		}
		if ms[i], err = message.Parse(raw); err != nil {
			return codec.Value{}, err
		}
		size += len(raw)
	}
	charge := broker.Unsynced(size)
	if err := k.c.unsynced.account.Take(ctx, charge); err != nil {
		return codec.Value{}, fmt.Errorf("%w: too much waits for the disk", broker.ErrBusy)
	}
	defer k.c.unsynced.account.Release(charge)
	if err := k.still(); err != nil { // it may have waited for that
		return codec.Value{}, err
	}
	seqs, err := k.c.svc.broker.Schedule(ctx, k.entity, ms, k.c.sending)
	if err != nil {
		return codec.Value{}, err
	}
	numbers := make([]int64, len(seqs))
	for i, s := range seqs {
		numbers[i] = int64(s)
	}
	return result("sequence-numbers", codec.Raw(codec.AppendLongArray(nil, numbers))), nil
}

func cancelScheduledMessage(ctx context.Context, k *call) (codec.Value, error) {
	seqs, err := k.numbers("sequence-numbers")
	if err != nil {
		return codec.Value{}, err
	}
	return dummy, k.c.svc.broker.CancelScheduled(ctx, k.entity, seqs)
}

func batchDeleteMessages(ctx context.Context, k *call) (codec.Value, error) {
	most, err := k.count("message-count", limits.Deleted)
	if err != nil {
		return codec.Value{}, err
	}
	before, err := k.time("enqueued-time-utc")
	if err != nil {
		return codec.Value{}, err
	}
	n, err := k.c.svc.broker.DeleteMessages(ctx, k.entity, before, most)
	if err != nil || n == 0 {
		return codec.Value{}, err
	}
	return result("message-count", codec.Int(int32(n))), nil
}
