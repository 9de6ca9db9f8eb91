// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// defaultServerTimeout is what the peer gets when ctx has no deadline.
const defaultServerTimeout = time.Minute

// manage asks an entity's management node and returns the fields of its answer,
// none for an answer without a map.
func (c *Client) manage(ctx context.Context, entity, operation string, request request) (map[string]any, error) {
	var fields map[string]any
	err := c.retry(ctx, func(*outage) error {
		conn, err := c.connection(ctx)
		if err != nil {
			return err
		}
		node, err := conn.management(ctx, entity)
		if err != nil {
			return err
		}
		reply, err := node.call(ctx, request.encode(ctx, operation))
		if err != nil {
			return err
		}
		fields, _ = reply.Value.(map[string]any)
		return nil
	})
	return fields, err
}

// request is the content of a management request.
type request struct {
	fields map[string]any
	link   string // name of the receiver it is about, if there is one
}

func (r request) encode(ctx context.Context, operation string) *amqp.Message {
	timeout := defaultServerTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(deadline), time.Millisecond)
	}
	properties := map[string]any{
		names.Operation:     operation,
		names.ServerTimeout: uint32(min(timeout, time.Hour).Milliseconds()),
	}
	if r.link != "" {
		properties[names.AssociatedLink] = r.link
	}
	return &amqp.Message{Value: r.fields, ApplicationProperties: properties}
}

// manage asks on behalf of a receiver: with its session and its link.
func (r *Receiver) manage(ctx context.Context, operation string, fields map[string]any) (map[string]any, error) {
	return r.manageAt(ctx, r.entity, operation, fields)
}

// manageAt is manage at one of the receiver's sources.
func (r *Receiver) manageAt(ctx context.Context, entity, operation string, fields map[string]any) (map[string]any, error) {
	if r.group != nil {
		fields["session-id"] = *r.group
	}
	ask := request{fields: fields}
	if name := r.name.Load(); name != nil {
		ask.link = *name
	}
	return r.client.manage(ctx, entity, operation, ask)
}

// RenewLock moves a message's lock into the future and notes the new end in it. Our own
// broker keeps a lock that was renewed through a restart, unless it is that of a session.
func (r *Receiver) RenewLock(ctx context.Context, m *Received) error {
	err := ErrLockLost
	if m.token != (amqp.UUID{}) {
		var reply map[string]any
		fields := map[string]any{"lock-tokens": []amqp.UUID{m.token}}
		if r.Extensions() {
			fields[names.DurableRenew] = true
		}
		reply, err = r.manageAt(ctx, cmp.Or(m.Source, r.entity), names.RenewLock, fields)
		if until, ok := reply["expirations"].([]time.Time); ok && len(until) == 1 {
			m.LockedUntil = until[0]
		}
	}
	if err != nil {
		return failure(fmt.Sprintf("renew lock of message %d of", m.SeqNo), cmp.Or(m.Source, r.entity), err)
	}
	return nil
}

// SaveState keeps a state beside a locked message, in place of the one that it has. It is
// durable when SaveState returns, and part of the message from then on, as its property
// triagemq-state, until it is complete or a dead letter. SaveState renews the lock as well,
// and returns its new end; m does not change. A state has at most 64 KiB and counts toward the size of its queue. Only our own broker
// keeps states; see [Receiver.Extensions].
func (r *Receiver) SaveState(ctx context.Context, m *Received, state []byte) (lockedUntil time.Time, err error) {
	err = ErrLockLost
	switch {
	case !r.Extensions():
		err = fmt.Errorf("%w: this broker keeps no states of messages", ErrNotAllowed)
	case m.token != (amqp.UUID{}):
		var reply map[string]any
		reply, err = r.manageAt(ctx, cmp.Or(m.Source, r.entity), names.SaveState, map[string]any{
			names.SavedToken: m.token, names.SavedState: state,
		})
		lockedUntil, _ = reply[names.SavedUntil].(time.Time)
	}
	if err != nil {
		return time.Time{}, failure(fmt.Sprintf("save state of message %d of", m.SeqNo), cmp.Or(m.Source, r.entity), err)
	}
	return lockedUntil, nil
}

// Peek returns up to limit messages whose numbers are from or higher, in the
// order of their numbers, whatever their state, without locking them. It does
// not wait: none means that there is none. Start with 0 and go on after the last
// number seen. With TellLevel our own broker tells the level of each message, and in
// LockedUntil whether it is locked.
func (r *Receiver) Peek(ctx context.Context, from SeqNo, limit int) ([]*Received, error) {
	fields := map[string]any{
		"from-sequence-number": int64(from),
		"message-count":        int32(limit),
	}
	if r.extensions.Load() && r.linkProperties[propTell] == true {
		fields[names.TellLevel] = true
	}
	reply, err := r.manage(ctx, names.PeekMessage, fields)
	var ms []*Received
	if err == nil {
		ms, err = messages(reply)
	}
	if err != nil {
		return nil, failure("peek at", r.entity, err)
	}
	return ms, nil
}

// ReceiveDeferred takes back messages that were deferred, by their numbers, in
// the receiver's mode.
func (r *Receiver) ReceiveDeferred(ctx context.Context, numbers ...SeqNo) ([]*Received, error) {
	settle := uint32(1) // lock
	if r.mode == ReceiveAndDelete {
		settle = 0
	}
	reply, err := r.manage(ctx, names.ReceiveBySequenceNumber, map[string]any{
		"sequence-numbers":     wireNumbers(numbers),
		"receiver-settle-mode": settle,
	})
	var ms []*Received
	if err == nil {
		ms, err = messages(reply)
	}
	if err != nil {
		return nil, failure("receive deferred from", r.entity, err)
	}
	return r.client.options.Hooks.received(ctx, ms, nil)
}

// messages reads the encoded messages of an answer.
func messages(reply map[string]any) ([]*Received, error) {
	list, _ := reply["messages"].([]any)
	out := make([]*Received, 0, len(list))
	for _, item := range list {
		fields, _ := item.(map[string]any)
		encoded, _ := fields["message"].([]byte)
		var raw amqp.Message
		if err := raw.UnmarshalBinary(encoded); err != nil {
			return nil, fmt.Errorf("%w: undecodable message in a reply: %w", ErrInvalid, err)
		}
		m := decode(&raw)
		m.token, _ = fields["lock-token"].(amqp.UUID)
		out = append(out, m)
	}
	return out, nil
}

// Schedule hands messages over now that become available at the given time, and
// returns their numbers, by which [Sender.CancelScheduled] takes them back.
func (s *Sender) Schedule(ctx context.Context, at time.Time, ms ...*Message) ([]SeqNo, error) {
	list := make([]any, 0, len(ms))
	all := make([]outgoing, len(ms))
	for i, m := range ms {
		later := *s.complete(m)
		later.ScheduleAt = at
		all[i] = s.hooks().sending(ctx, s.entity, &later)
	}
	for _, m := range all {
		entry, err := m.entry()
		if err != nil {
			return nil, s.hooks().sent(s.entity, failure("schedule on", s.entity, err), all...)
		}
		list = append(list, entry)
	}
	reply, err := s.client.manage(ctx, s.entity, names.ScheduleMessage,
		request{fields: map[string]any{"messages": list}})
	if err != nil {
		return nil, s.hooks().sent(s.entity, failure("schedule on", s.entity, err), all...)
	}
	_ = s.hooks().sent(s.entity, nil, all...) // it returns what it is given
	numbers, _ := reply["sequence-numbers"].([]int64)
	out := make([]SeqNo, len(numbers))
	for i, n := range numbers {
		out[i] = SeqNo(n)
	}
	return out, nil
}

// entry is a message as schedule-message wants it.
func (m *Message) entry() (map[string]any, error) {
	wire, err := m.encode()
	if err != nil {
		return nil, err
	}
	encoded, err := wire.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	entry := map[string]any{"message-id": m.ID, "message": encoded}
	if m.Session != "" {
		entry["session-id"] = m.Session
	}
	if m.PartitionKey != "" {
		entry["partition-key"] = m.PartitionKey
	}
	return entry, nil
}

// CancelScheduled takes back messages that were scheduled and are not available yet.
func (s *Sender) CancelScheduled(ctx context.Context, numbers ...SeqNo) error {
	_, err := s.client.manage(ctx, s.entity, names.CancelScheduledMessage,
		request{fields: map[string]any{"sequence-numbers": wireNumbers(numbers)}})
	if err != nil {
		return failure("cancel on", s.entity, err)
	}
	return nil
}

func wireNumbers(numbers []SeqNo) []int64 {
	out := make([]int64, len(numbers))
	for i, n := range numbers {
		out[i] = int64(n)
	}
	return out
}
