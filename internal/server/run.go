// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/lifecycle"
	"github.com/triagemq/triagemq/internal/servicebus"
	"github.com/triagemq/triagemq/internal/shard"
)

// Run serves until ctx ends or something breaks. It returns nil only if every
// layer stopped in good order.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return err
	}
	if err := cfg.FS.MkdirAll("."); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	j, err := wal.Open(cfg.FS, cfg.wal())
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	err = serve(ctx, cfg, j, log)
	return errors.Join(err, j.Close())
}

// serve starts the layers on an open journal, bottom up.
func serve(ctx context.Context, cfg Config, j *wal.WAL, log *slog.Logger) error {
	// A store keeps at least the shards it was made with, whatever the machine.
	shards, err := openShards(&disk{Journal: j, log: log}, max(cfg.Storage.Shards, j.Shards()), cfg.shard())
	if err != nil {
		return err
	}
	b, err := broker.Open(shards, log)
	if err != nil {
		return fmt.Errorf("recover the entities: %w", err)
	}
	rules, fresh, err := loadRules(cfg.FS)
	if err != nil {
		return err
	}
	keeper := access.NewKeeper(rules.With(access.OfEntity(cfg.Security.Rules)), entityRules(b))
	segments := func() int { st := j.Stats(); return st.Segments + st.Reserve }
	f, err := listen(cfg, servicebus.New(b, log), Parts{Broker: b, Keeper: keeper}, segments, log)
	if err != nil {
		return err
	}

	hooks := newWebhooks(log)
	b.OnAlert(hooks.notify)

	s := lifecycle.New(ctx)
	s.Go("journal", j.Run)
	s.Go("shards", runAll(shards))
	s.Go("webhooks", hooks.run)
	s.Go("broker", b.Run)
	if err := define(ctx, b, cfg.Config, log); err != nil {
		f.close()
		// A layer that fails at once brings down those below in good order.
		s.Go("entities", func(context.Context) error { return err })
		return s.Wait(cfg.Grace.Std())
	}
	s.Go("entities", follow(b, cfg.Changes, log))
	s.Go("front", f.run)
	if cfg.Ready != nil {
		cfg.Ready(Ready{Addresses: f.addresses(), NewKey: fresh, TLS: f.tls != nil, CA: f.ca})
	}
	return s.Wait(cfg.Grace.Std())
}

func openShards(j journal.Journal, n int, opts shard.Options) ([]*shard.Shard, error) {
	numbers := make([]journal.Shard, n)
	for i := range numbers {
		numbers[i] = journal.Shard(i)
	}
	shards, err := shard.OpenAll(j, numbers, opts)
	if err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	return shards, nil
}

// runAll runs the shards as one layer. One that fails takes the others with it.
func runAll(shards []*shard.Shard) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		errs := make([]error, len(shards))
		var wg sync.WaitGroup
		for i, s := range shards {
			wg.Go(func() {
				errs[i] = s.Run(ctx)
				stop(errs[i])
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	}
}

// entityRules looks up the access rules in the definition of a queue or topic.
func entityRules(b *broker.Broker) func(path string) access.Rules {
	return func(path string) access.Rules {
		var defined entity.AuthorizationRules
		if q, err := b.Queue(path); err == nil {
			defined = q.AuthorizationRules
		} else if t, err := b.Topic(path); err == nil {
			defined = t.AuthorizationRules
		}
		return access.OfEntity(defined)
	}
}
