// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
)

// live hands readings to those who watch a home.
//
// It reads the hub itself, all partitions from their end on, in a consumer group of its own.
// So a reading is on the page at once, whichever instance has the home's partition and
// however far behind it is, a take-over does not interrupt the page, and any number of web
// servers can do the same. What was before comes from the stored document.
type live struct {
	client *client.Client
	log    *slog.Logger

	mu       sync.Mutex
	watchers map[string]map[*watcher]struct{} // by partition key; guarded by mu
}

// watcher is an open page.
type watcher struct {
	readings chan liveReading
	lost     chan struct{} // closed when it did not keep up: it has missed a reading
}

// liveReading is a reading as the page gets it.
type liveReading struct {
	reading
	Kind  kind         `json:"kind"`
	SeqNo client.SeqNo `json:"sequenceNumber"`
}

// watch returns the readings of a home from now on, and a function that ends it.
func (l *live) watch(home int) (*watcher, func()) {
	w := &watcher{make(chan liveReading, 64), make(chan struct{})}
	key := homeKey(home)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watchers[key] == nil {
		l.watchers[key] = map[*watcher]struct{}{}
	}
	l.watchers[key][w] = struct{}{}
	return w, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.remove(key, w)
	}
}

func (l *live) remove(key string, w *watcher) {
	delete(l.watchers[key], w)
	if len(l.watchers[key]) == 0 {
		delete(l.watchers, key)
	}
}

// run reads the hub until ctx ends.
func (l *live) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	var names []string
	l.persist(ctx, func() (err error) {
		names, err = l.client.Partitions(ctx, hubName)
		return err
	})
	for _, partition := range names {
		wg.Go(func() {
			l.persist(ctx, func() error { return l.read(ctx, partition) })
		})
	}
}

// persist calls f again and again until it succeeds or ctx ends.
func (l *live) persist(ctx context.Context, f func() error) {
	for ctx.Err() == nil {
		err := f()
		if err == nil || ctx.Err() != nil {
			return
		}
		l.log.Warn("read the hub", "err", err)
		_ = sleepUntil(ctx, time.Now().Add(time.Second)) // the loop looks at ctx
	}
}

// read reads a partition until ctx ends.
func (l *live) read(ctx context.Context, partition string) error {
	r, err := l.client.OpenEventReader(ctx, hubName, partition, &client.EventReaderOptions{Group: liveGroup, Latest: true})
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		events, err := r.Receive(ctx, 1000)
		if err != nil {
			return err
		}
		for _, e := range events {
			l.publish(e)
		}
	}
}

// publish hands an event to those who watch its home. Most events have nobody.
func (l *live) publish(e *client.Received) {
	l.mu.Lock()
	defer l.mu.Unlock()
	watchers := l.watchers[e.PartitionKey]
	if len(watchers) == 0 {
		return
	}
	r, err := parseReading(e.Body)
	if err != nil {
		return // the instances report it
	}
	for w := range watchers {
		select {
		case w.readings <- liveReading{r, kindOf(r.Sensor, r.Value), e.SeqNo}:
		default:
			close(w.lost)
			l.remove(e.PartitionKey, w)
		}
	}
}
