// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
)

// wish is one entity of a file.
type wish struct {
	path   string
	have   func() (any, error)
	want   any
	create func() error
	update func() error
}

// define creates the entities of a file and brings those that exist in line with
// it. What cannot be changed in place is reported and left as it is, because the
// messages in it are worth more than the file.
func define(ctx context.Context, b *broker.Broker, cfg config.Config, log *slog.Logger) error {
	var errs []error
	for _, w := range wishesOf(ctx, b, cfg) {
		if err := w.grant(log); err != nil {
			errs = append(errs, fmt.Errorf("create %q: %w", w.path, err))
		}
	}
	return errors.Join(errs...)
}

func wishesOf(ctx context.Context, b *broker.Broker, cfg config.Config) []wish {
	var ws []wish
	for _, q := range cfg.Queues {
		ws = append(ws, wish{
			path:   q.Name,
			have:   func() (any, error) { return b.Queue(q.Name) },
			want:   q.WithDefaults(),
			create: func() error { _, err := b.CreateQueue(ctx, q); return err },
			update: func() error { _, err := b.UpdateQueue(ctx, q); return err },
		})
	}
	for _, t := range cfg.Topics {
		ws = append(ws, wish{
			path:   t.Name,
			have:   func() (any, error) { return b.Topic(t.Name) },
			want:   t.Topic.WithDefaults(),
			create: func() error { _, err := b.CreateTopic(ctx, t.Topic); return err },
			update: func() error { _, err := b.UpdateTopic(ctx, t.Topic); return err },
		})
		for _, s := range t.Subscriptions {
			ws = append(ws, wish{
				path:   entity.SubscriptionPath(t.Name, s.Name),
				have:   func() (any, error) { return b.Subscription(t.Name, s.Name) },
				want:   s.WithDefaults(),
				create: func() error { _, err := b.CreateSubscription(ctx, t.Name, s); return err },
				update: func() error { _, err := b.UpdateSubscription(ctx, t.Name, s); return err },
			})
		}
	}
	return ws
}

func (w wish) grant(log *slog.Logger) error {
	have, err := w.have()
	switch {
	case errors.Is(err, broker.ErrNotFound):
		return w.create()
	case err != nil:
		return err
	case reflect.DeepEqual(have, w.want):
		return nil
	}
	if err := w.update(); err != nil {
		log.Warn("entity differs from the configuration and cannot follow it", "entity", w.path, "err", err)
	}
	return nil
}
