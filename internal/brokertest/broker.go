// SPDX-License-Identifier: Apache-2.0

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/hubs"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/monitor"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

const (
	// shards are two, so that what crosses from one to another is met.
	shards = 2
	// segmentSize is small, so that stores have several.
	segmentSize = 1 << 20
)

// Broker is a broker with its disk, journal and shards.
type Broker struct {
	*broker.Broker
	journal            *wal.WAL
	stopUpper, stopLow context.CancelFunc
	upper, low         sync.WaitGroup

	mu   sync.Mutex
	errs []error // why layers ended, other than by Stop
}

// Start runs a broker on a disk in memory until the test ends.
func Start(t testing.TB) *broker.Broker {
	t.Helper()
	return StartOn(t, vfs.NewMem())
}

// StartOn runs a broker on a disk until the test ends.
func StartOn(t testing.TB, disk vfs.FS) *broker.Broker {
	t.Helper()
	b, err := Open(t.Context(), disk, queueserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Errorf("stop the broker: %v", err)
		}
	})
	return b.Broker
}

// Open recovers a broker from a disk, with small segments, and runs it until ctx
// ends or it is stopped.
func Open(ctx context.Context, disk vfs.FS, o queueserver.Options) (*Broker, error) {
	w, err := wal.Open(disk, wal.Options{SegmentSize: segmentSize})
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	o.NewMonitor = monitor.New(slog.New(slog.DiscardHandler))
	var all []*queueserver.Shard
	for i := range shards {
		s, err := queueserver.Open(ctx, w, journal.Shard(i), o)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open shard %d: %w", i, err), w.Close())
		}
		all = append(all, s)
	}
	logs := hubs.New(disk, hubs.Options{Journal: wal.Options{SegmentSize: segmentSize}}, slog.New(slog.DiscardHandler))
	opened, err := broker.Open(all, logs, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the broker: %w", err), w.Close())
	}
	if err := logs.Load(ctx, opened.HubLogSettings()); err != nil {
		return nil, errors.Join(fmt.Errorf("open the event hubs: %w", err), logs.Close(), w.Close())
	}
	b := &Broker{Broker: opened, journal: w}
	upper, stopUpper := context.WithCancel(ctx)
	// The journal stops last: the layers above wait for it at the end.
	low, stopLow := context.WithCancel(context.WithoutCancel(ctx))
	b.stopUpper, b.stopLow = stopUpper, stopLow
	b.layer(&b.low, low, w.Run)
	for _, s := range all {
		b.layer(&b.upper, upper, s.Run)
	}
	b.layer(&b.upper, upper, logs.Run)
	b.layer(&b.upper, upper, opened.Run)
	return b, nil
}

func (b *Broker) layer(wg *sync.WaitGroup, ctx context.Context, run func(context.Context) error) {
	wg.Go(func() {
		if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			b.mu.Lock()
			b.errs = append(b.errs, err)
			b.mu.Unlock()
		}
	})
}

// Stop stops the broker cleanly and returns the errors since its start.
func (b *Broker) Stop() error {
	b.stopUpper()
	b.upper.Wait()
	b.stopLow()
	b.low.Wait()
	return errors.Join(append(b.errs, b.journal.Close())...)
}
