// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/eventhubs"
	"github.com/triagemq/triagemq/internal/hubs"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/lifecycle"
	"github.com/triagemq/triagemq/internal/monitor"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/server/credentials"
	"github.com/triagemq/triagemq/internal/server/webhook"
	"github.com/triagemq/triagemq/internal/servicebus"
)

// ErrUnfinished means that the broker was asked to stop and something could not be
// finished within the grace, such as what waits for a disk that hangs. Nothing that
// was acknowledged is lost.
var ErrUnfinished = errors.New("server: stopped before everything was finished")

// Run serves until ctx ends or something breaks. It returns nil only if every
// layer stopped cleanly. It returns within the grace after ctx has ended,
// whatever the disk does; goroutines that wait for it are then left behind.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return err
	}
	b, err := open(ctx, cfg, log)
	if err != nil {
		return err
	}
	err = b.serve(ctx)
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		log.Info("stopped")
	}
	if errors.Is(err, lifecycle.ErrStopTimeout) || errors.Is(err, queueserver.ErrUnfinished) {
		err = fmt.Errorf("%w within %v: %w", ErrUnfinished, cfg.Grace.Std(), err)
	}
	return err
}

// built is a broker that was recovered, with its sockets, before it runs.
type built struct {
	cfg    Config
	log    *slog.Logger
	wal    *wal.WAL
	clock  *clock.Clock
	shards []*queueserver.Shard
	hubs   *hubs.Set
	broker *broker.Broker
	hooks  *webhook.Sender
	front  *frontend
	review func()       // has connections look at their rights
	newKey *access.Rule // nil unless this is the first start that needs one
	keys   keys
}

// open recovers the broker. To read a large store takes its time, and a disk that
// hangs never returns: when ctx ends, open gives up after the grace.
func open(ctx context.Context, cfg Config, log *slog.Logger) (*built, error) {
	type result struct {
		b   *built
		err error
	}
	done := make(chan result, 1)
	go func() { // waited for below, unless the disk hangs
		b, err := recoverFrom(ctx, cfg, log)
		done <- result{b, err}
	}()
	select {
	case r := <-done:
		return r.b, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		if r.err != nil {
			return nil, r.err
		}
		r.b.front.close()
		return nil, errors.Join(context.Cause(ctx), r.b.close())
	case <-time.After(cfg.Grace.Std()):
		return nil, fmt.Errorf("%w within %v: the store is still being opened", ErrUnfinished, cfg.Grace.Std())
	}
}

// recoverFrom opens the journal and makes the layers on it.
func recoverFrom(ctx context.Context, cfg Config, log *slog.Logger) (*built, error) {
	if err := cfg.FS.MkdirAll("."); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	j, err := wal.Open(cfg.FS, cfg.wal())
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	b := &built{cfg: cfg, log: log, wal: j}
	if err := b.build(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// close closes the journals of a broker that never ran.
func (b *built) close() error {
	if b.hubs == nil {
		return b.wal.Close()
	}
	return errors.Join(b.hubs.Close(), b.wal.Close())
}

// build makes the layers on the journal, bottom up.
func (b *built) build(ctx context.Context) (err error) {
	cfg, j, log := b.cfg, b.wal, b.log
	// A store keeps at least the shards it was made with, whatever the machine.
	memory := cfg.memory(log)
	opts := cfg.shard()
	opts.Clock, opts.NewMonitor = clock.New(nil), monitor.New(log)
	opts.Stored, opts.Reserve = memory.Stored().Messages, memory.Stored().Reserve
	b.clock = opts.Clock
	b.shards, err = openShards(ctx, &disk{Journal: j, log: log}, max(cfg.Storage.Shards, j.Shards()), opts, log)
	if err != nil {
		return err
	}
	logs := cfg.hubs(b.clock, memory.Stored().Groups, log)
	b.hubs = hubs.New(cfg.FS, logs, log)
	if b.broker, err = broker.Open(b.shards, b.hubs, log); err != nil {
		return fmt.Errorf("recover the entities: %w", err)
	}
	b.broker.ChargeDefinitions(memory.Stored().Definitions)
	if err := b.hubs.Load(ctx, b.broker.HubLogSettings()); err != nil {
		return fmt.Errorf("recover the event hubs: %w", err)
	}
	if !cfg.trusting() {
		b.broker.RequireLongKeys()
	}
	rules, fresh, err := credentials.LoadRules(cfg.FS, !cfg.trusting())
	if err != nil {
		return err
	}
	b.newKey = fresh
	b.hooks = webhook.New(log, cfg.webhookNetworks())
	b.broker.OnAlert(b.hooks.Notify)
	b.keys = keys{fs: cfg.FS, kept: rules, configured: access.OfEntity(cfg.Security.Rules)}
	keeper := access.NewRuleAuthority(b.keys.all(), entityRules(b.broker))
	b.keys.keeper = keeper
	if key := sealKey(b.keys.all(), cfg.trusting()); key != nil {
		b.broker.SealPools(key)
	}
	segments := func() int { st := j.Stats(); return st.Segments + st.Ready + st.Spares + logs.Files.Opened() }
	parts := Parts{Broker: b.broker, Keeper: keeper, Memory: memory, Disk: diskStats(j, cfg.FS)}
	service := azure.New(b.broker, memory, log, servicebus.New(b.broker), eventhubs.New(b.broker))
	keeper.OnChange(service.Review)
	// Tokens end by the wall clock, and the timers that look at them know nothing of
	// a machine that slept.
	b.review = service.Review
	b.front, err = listen(cfg, service, parts, segments, log)
	return err
}

// serve runs the layers until ctx ends, and stops them.
func (b *built) serve(ctx context.Context) error {
	s := lifecycle.New(ctx)
	runJournal(s, b.wal)
	s.Go("shards", runAll(b.shards, b.log))
	s.Go("hubs", b.hubs.Run)
	s.Go("clock", watchClock(b.clock, b.review, b.log))
	s.Go("webhooks", b.hooks.Run)
	s.Go("broker", b.broker.Run)
	defined, up := make(chan error, 1), make(chan struct{})
	s.Go("entities", func(ctx context.Context) error {
		unapplied, err := define(ctx, b.broker, b.cfg.Config, b.log)
		b.front.unapplied.Store(&unapplied)
		if err == nil && b.newKey != nil {
			// As late as can be: a start that fails shows no key, and must not keep one.
			err = credentials.SaveRules(b.cfg.FS, b.keys.kept)
		}
		defined <- err
		if err != nil {
			return err // a layer that fails stops those below cleanly
		}
		return b.follow(ctx, up)
	})
	var err error
	select {
	case err = <-defined:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		b.front.close()
		return s.Wait(b.cfg.Grace.Std())
	}
	s.Go("front", b.front.run)
	if b.cfg.Ready != nil {
		b.cfg.Ready(Ready{Addresses: b.front.addresses(), NewKey: b.newKey, TLS: b.front.tls.Load() != nil, CA: b.front.ca})
	}
	close(up)
	return s.Wait(b.cfg.Grace.Std())
}

// runJournal runs the journal, and below it what closes it when everything that
// reads from it has stopped. Both are layers, because a disk that hangs may hold up
// either, and the process has to end all the same.
func runJournal(s *lifecycle.Stack, j *wal.WAL) {
	ran := make(chan struct{})
	s.Go("store", func(ctx context.Context) error {
		<-ctx.Done()
		<-ran
		return j.Close()
	})
	s.Go("journal", func(ctx context.Context) error {
		defer close(ran)
		return j.Run(ctx)
	})
}

func openShards(ctx context.Context, j journal.Journal, n int, opts queueserver.Options, log *slog.Logger) ([]*queueserver.Shard, error) {
	numbers := make([]journal.Shard, n)
	for i := range numbers {
		numbers[i] = journal.Shard(i)
	}
	shards, err := queueserver.OpenAll(ctx, j, numbers, opts)
	if err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	warnOfLosses(shards, log)
	return shards, nil
}

// lossLines bounds how many of the queues of a shard that have lost something are logged.
const lossLines = 100

// warnOfLosses logs what is missing because a repair of the journal has dropped records.
func warnOfLosses(shards []*queueserver.Shard, log *slog.Logger) {
	dropped := uint64(0)
	for i, s := range shards {
		records, losses := s.Losses()
		dropped = max(dropped, records) // each shard counts all of them, since they may be its own
		for at, l := range losses {
			switch {
			case at == lossLines:
				log.Warn("more queues have lost something", "shard", i, "queues", len(losses)-at)
			case at > lossLines:
			case l.Entity == "":
				log.Warn("definition of an entity is lost, and its messages with it",
					"shard", i, "id", l.Queue.Entity, "queue", entity.SubQueue(l.Queue.SubQueue), "records", l.Missing)
			default:
				log.Warn("messages are lost", "shard", i, "entity", l.Entity, "queue", entity.SubQueue(l.Queue.SubQueue), "messages", l.Missing)
			}
		}
	}
	if dropped > 0 {
		log.Warn("a repair has dropped records of the journal: messages may be missing, and settled ones may be delivered again", "records", dropped)
	}
}

// runAll runs the shards as one layer. One that fails takes the others with it. One
// whose history has another owner does not, unless it is the last: what it had is
// served elsewhere.
func runAll(shards []*queueserver.Shard, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		errs := make([]error, len(shards))
		var left atomic.Int64
		left.Store(int64(len(shards)))
		var wg sync.WaitGroup
		for i, s := range shards {
			wg.Go(func() {
				err := s.Run(ctx)
				if errors.Is(err, queueserver.ErrMoved) {
					log.Error("another process has taken over a shard: its entities are not served here any more", "shard", i, "err", err)
					if left.Add(-1) > 0 {
						return
					}
				}
				errs[i] = err
				stop(err)
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	}
}

// sealKey returns the key with which orders of worker pools are sealed, so that the broker
// knows them again after a restart: it is made from the first key with Manage, or, where
// anybody may do anything, from the one that everybody knows. Nil is that there is none.
func sealKey(rules access.Rules, trusting bool) []byte {
	if trusting {
		rules = append(slices.Clone(rules), access.Development)
	}
	for _, r := range rules {
		if r.Rights.Has(access.Manage) && r.PrimaryKey != "" {
			mac := hmac.New(sha256.New, []byte(r.PrimaryKey))
			mac.Write([]byte("orders of worker pools"))
			return mac.Sum(nil)
		}
	}
	return nil
}

// entityRules looks up the access rules in the definition of a queue or topic.
func entityRules(b *broker.Broker) access.Entities {
	return func(name string) (access.Entity, bool) {
		id, rules, ok := b.Authorization(name)
		return access.Entity{ID: id, Rules: access.OfEntity(rules)}, ok
	}
}
