// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/client"
)

// receiver is what a pool needs of [client.Receiver]. Tests put a model in its place.
type receiver interface {
	Receive(ctx context.Context, limit int) ([]*client.Received, error)
	Poll(ctx context.Context, limit int) ([]*client.Received, error)
	Peek(ctx context.Context, from client.SeqNo, limit int) ([]*client.Received, error)
	Complete(ctx context.Context, ms ...*client.Received) error
	Abandon(ctx context.Context, m *client.Received, properties map[string]any) error
	Retry(ctx context.Context, m *client.Received, after time.Duration, properties map[string]any) error
	Release(ctx context.Context, m *client.Received, properties map[string]any) error
	DeadLetter(ctx context.Context, m *client.Received, reason, description string) error
	RenewLock(ctx context.Context, m *client.Received) error
	SaveState(ctx context.Context, m *client.Received, state []byte) (lockedUntil time.Time, err error)
	// Extensions reports whether the broker knows levels, several sources, times of retry,
	// locks that survive its restart, and saved states.
	Extensions() bool
	Close() error
}

// opener opens receivers.
type opener func(ctx context.Context, entity string, o *client.ReceiverOptions) (receiver, error)

func openWith(c *client.Client) opener {
	return func(ctx context.Context, entity string, o *client.ReceiverOptions) (receiver, error) {
		r, err := c.OpenReceiver(ctx, entity, o)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
}
