// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// Complete says that messages are done with: the broker forgets them. Several
// are settled side by side; the errors are joined.
func (r *Receiver) Complete(ctx context.Context, ms ...*Received) error {
	done := outcome{name: "completed", status: "completed", onLink: func(ctx context.Context, m *Received) error {
		return m.link.receiver.AcceptMessage(ctx, m.raw)
	}}
	if len(ms) == 1 {
		return r.settle(ctx, ms[0], done)
	}
	errs := make([]error, len(ms))
	var wg sync.WaitGroup
	for i, m := range ms {
		wg.Go(func() { errs[i] = r.settle(ctx, m, done) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Abandon gives a message back after a failure: it becomes available at its old
// place, and the failure counts toward its dead-lettering. The properties, which
// may be nil, are merged into the message's own.
func (r *Receiver) Abandon(ctx context.Context, m *Received, properties map[string]any) error {
	return r.settle(ctx, m, outcome{
		name: "abandoned", status: "abandoned", properties: properties,
		onLink: func(ctx context.Context, m *Received) error {
			return m.link.receiver.ModifyMessage(ctx, m.raw, &amqp.ModifyMessageOptions{
				Annotations: annotations(properties),
			})
		},
	})
}

// Retry is Abandon of a message that nobody gets for some time: it waits in the broker, at
// its old place, and a session waits for it. Waiting survives restarts of both sides, and
// takes no lock. At most a year. Only our own broker knows it; see [Receiver.Extensions].
func (r *Receiver) Retry(ctx context.Context, m *Received, after time.Duration, properties map[string]any) error {
	if !r.Extensions() {
		return failure(fmt.Sprintf("retry message %d of", m.SeqNo), cmp.Or(m.Source, r.entity),
			fmt.Errorf("%w: this broker has no times of retry", ErrNotAllowed))
	}
	wait := max(after, 0).Milliseconds()
	return r.settle(ctx, m, outcome{
		name: "abandoned", status: "abandoned", properties: properties, extra: map[string]any{names.RetryAfter: wait},
		onLink: func(ctx context.Context, m *Received) error {
			changes := amqp.Annotations{names.RetryAfter: wait}
			maps.Copy(changes, annotations(properties))
			return m.link.receiver.ModifyMessage(ctx, m.raw, &amqp.ModifyMessageOptions{Annotations: changes})
		},
	})
}

// Defer puts a message aside: only [Receiver.ReceiveDeferred] brings it back, by
// its number. It counts as a delivery, as a failed one does, and the last one makes a
// dead letter. The properties, which may be nil, are merged into its own.
func (r *Receiver) Defer(ctx context.Context, m *Received, properties map[string]any) error {
	return r.settle(ctx, m, outcome{
		name:       "deferred",
		status:     "defered", // as the wire spells it
		properties: properties,
		onLink: func(ctx context.Context, m *Received) error {
			return m.link.receiver.ModifyMessage(ctx, m.raw, &amqp.ModifyMessageOptions{
				UndeliverableHere: true,
				Annotations:       annotations(properties),
			})
		},
	})
}

// DeadLetter moves a message to the dead letter queue and says why.
func (r *Receiver) DeadLetter(ctx context.Context, m *Received, reason, description string) error {
	return r.settle(ctx, m, outcome{
		name:   "dead-lettered",
		status: "suspended",
		extra:  map[string]any{"deadletter-reason": reason, "deadletter-description": description},
		onLink: func(ctx context.Context, m *Received) error {
			return m.link.receiver.RejectMessage(ctx, m.raw, &amqp.Error{
				Condition: names.DeadLetter,
				Info: map[string]any{
					names.DeadLetterReason:      reason,
					names.DeadLetterDescription: description,
				},
			})
		},
	})
}

// Release gives a message back: it becomes available at its old place, and nothing
// counts against it. The properties, which may be nil, are merged into its own, such
// as how far the work on it got.
//
// Brokers other than ours have no such thing with properties, nor after the connection
// that the message came over is gone. They take it for Abandon, which counts.
func (r *Receiver) Release(ctx context.Context, m *Received, properties map[string]any) error {
	return r.settle(ctx, m, r.release(properties))
}

func (r *Receiver) release(properties map[string]any) outcome {
	var uncounted map[string]any
	if r.Extensions() {
		uncounted = map[string]any{names.Uncounted: true} // others would make a property of it
	}
	return outcome{
		name: "released", status: "abandoned", properties: properties,
		extra: uncounted,
		onLink: func(ctx context.Context, m *Received) error {
			if len(properties) == 0 {
				return m.link.receiver.ReleaseMessage(ctx, m.raw)
			}
			changes := annotations(properties)
			for name, yes := range uncounted {
				changes[name] = yes
			}
			return m.link.receiver.ModifyMessage(ctx, m.raw, &amqp.ModifyMessageOptions{Annotations: changes})
		},
	}
}

// outcome is a disposition in the two forms that it has on the wire.
type outcome struct {
	onLink     func(context.Context, *Received) error
	name       string         // for Hooks
	status     string         // of update-disposition
	properties map[string]any // to merge
	extra      map[string]any // further fields of update-disposition
}

// errLinkGone leads to settling by token.
var errLinkGone = errors.New("client: link gone")

// settle tells the peer on the link that brought the message, or by its lock
// when that link is gone: locks belong to the entity and outlive connections.
func (r *Receiver) settle(ctx context.Context, m *Received, o outcome) error {
	begun := time.Now()
	err := r.settleUnseen(ctx, m, o)
	if hook := r.client.options.Hooks.Settled; hook != nil {
		hook(ctx, m, o.name, time.Since(begun), err)
	}
	return err
}

// settleUnseen is settle without Hooks, for messages that the caller has not seen.
func (r *Receiver) settleUnseen(ctx context.Context, m *Received, o outcome) error {
	if m.token == (amqp.UUID{}) {
		return fmt.Errorf("settle message %d of %q: %w: it is not locked", m.SeqNo, r.entity, ErrLockLost)
	}
	if r.prefetcher != nil {
		r.prefetcher.settled(m.token)
	}
	err := errLinkGone
	if m.link != nil && m.link.usable() {
		if err = o.onLink(ctx, m); err != nil {
			// go-amqp takes a message for settled although the peer refused that, and
			// would not send what comes next. From here on its lock is all we use.
			m.link = nil
		}
	}
	if err != nil && ctx.Err() == nil {
		err = translate(err)
		if !permanent(err) {
			err = r.settleByToken(ctx, m, o)
		}
	}
	if err != nil {
		return failure(fmt.Sprintf("settle message %d of", m.SeqNo), cmp.Or(m.Source, r.entity), err)
	}
	return nil
}

func (r *Receiver) settleByToken(ctx context.Context, m *Received, o outcome) error {
	fields := map[string]any{
		"disposition-status": o.status,
		"lock-tokens":        []amqp.UUID{m.token},
	}
	maps.Copy(fields, o.extra)
	if len(o.properties) > 0 {
		fields["properties-to-modify"] = o.properties
	}
	_, err := r.manageAt(ctx, cmp.Or(m.Source, r.entity), names.UpdateDisposition, fields)
	return err
}

// annotations carries property changes to the peer, which merges them into the
// application properties.
func annotations(properties map[string]any) amqp.Annotations {
	if len(properties) == 0 {
		return nil
	}
	out := amqp.Annotations{}
	for k, v := range properties {
		out[k] = v
	}
	return out
}
