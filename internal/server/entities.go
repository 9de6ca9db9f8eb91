// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
)

// define creates the entities of a file and brings those that exist in line with
// it. What cannot be changed in place is reported and left as it is, because the
// messages in it are worth more than the file.
func define(ctx context.Context, b *broker.Broker, es Entities, log *slog.Logger) error {
	for _, q := range es.Queues {
		have, err := b.Queue(q.Name)
		if err := settle(log, q.Name, err, have, q.WithDefaults(),
			func() error { _, err := b.CreateQueue(ctx, q); return err },
			func() error { _, err := b.UpdateQueue(ctx, q); return err }); err != nil {
			return err
		}
	}
	for _, t := range es.Topics {
		if err := defineTopic(ctx, b, t, log); err != nil {
			return err
		}
	}
	return nil
}

func defineTopic(ctx context.Context, b *broker.Broker, t Topic, log *slog.Logger) error {
	have, err := b.Topic(t.Name)
	if err := settle(log, t.Name, err, have, t.Topic.WithDefaults(),
		func() error { _, err := b.CreateTopic(ctx, t.Topic); return err },
		func() error { _, err := b.UpdateTopic(ctx, t.Topic); return err }); err != nil {
		return err
	}
	for _, s := range t.Subscriptions {
		have, err := b.Subscription(t.Name, s.Name)
		if err := settle(log, entity.SubscriptionPath(t.Name, s.Name), err, have, s.WithDefaults(),
			func() error { _, err := b.CreateSubscription(ctx, t.Name, s); return err },
			func() error { _, err := b.UpdateSubscription(ctx, t.Name, s); return err }); err != nil {
			return err
		}
	}
	return nil
}

// settle creates or updates one entity, found says how looking for it went.
func settle[T any](log *slog.Logger, path string, found error, have, want T, create, update func() error) error {
	switch {
	case errors.Is(found, broker.ErrNotFound):
		if err := create(); err != nil {
			return fmt.Errorf("create %q: %w", path, err)
		}
	case found != nil:
		return fmt.Errorf("look up %q: %w", path, found)
	case !reflect.DeepEqual(have, want):
		if err := update(); err != nil {
			log.Warn("entity differs from the configuration and cannot follow it", "entity", path, "err", err)
		}
	}
	return nil
}
