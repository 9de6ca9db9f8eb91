// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/processor"
)

// unreadable is the queue for events that are no readings.
const unreadable = "unreadable-readings"

// instance is one of those that share the partitions. Package processor does the sharing:
// this is what the company adds.
type instance struct {
	name  string
	store store

	mu     sync.Mutex
	owned  map[string]*partitionHomes // by partition; guarded by mu
	events atomic.Int64
	saves  atomic.Int64
}

// run handles events until ctx ends, and then hands its partitions over.
func (in *instance) run(ctx context.Context, c *client.Client, out io.Writer) error {
	in.owned = map[string]*partitionHomes{}
	p := &processor.Processor{
		Client: c, Hub: hubName, Name: in.name,
		Handle:     in.handle,
		OnError:    func(err error) { fmt.Fprintln(out, err) },
		DeadLetter: unreadable,
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { in.tell(ctx, p, out) })
	err := p.Run(ctx)
	cancel()
	wg.Wait()
	return err
}

// handle is called with the events of a partition, in their order, by one goroutine at a
// time. When it returns nil the events count as handled; then all that they changed is
// stored. If the instance dies before that is remembered, its successor gets them again,
// and finds by their sequence numbers that the documents have them.
func (in *instance) handle(ctx context.Context, p *processor.Partition, events []*client.Received) error {
	saved, err := in.homesOf(p).handle(ctx, events)
	in.saves.Add(int64(saved))
	if err == nil {
		in.events.Add(int64(len(events)))
	}
	return err
}

// homesOf returns the homes of a partition. They are kept in memory while the instance has
// it: whenever it gets the partition again, others may have changed them.
func (in *instance) homesOf(p *processor.Partition) *partitionHomes {
	in.mu.Lock()
	defer in.mu.Unlock()
	h := in.owned[p.ID()]
	if h == nil || h.grant != p {
		h = &partitionHomes{grant: p, partition: p.ID(), store: in.store, homes: map[int]*document{}, unsaved: map[int]*document{}}
		in.owned[p.ID()] = h
	}
	return h
}

// forget drops the homes of partitions that the instance has lost.
func (in *instance) forget(s processor.Status) {
	has := map[string]bool{}
	for _, p := range s.Partitions {
		has[p.ID] = true
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for id := range in.owned {
		if !has[id] {
			delete(in.owned, id)
		}
	}
}

// tell prints what the instance has and does, every ten seconds.
func (in *instance) tell(ctx context.Context, p *processor.Processor, out io.Writer) {
	for last := int64(0); ; {
		if sleepUntil(ctx, time.Now().Add(10*time.Second)) != nil {
			return
		}
		s := p.Status()
		in.forget(s)
		now := in.events.Load()
		fmt.Fprintf(out, "%d partitions, %d events/s, %d documents written so far\n", len(s.Partitions), (now-last)/10, in.saves.Load())
		last = now
	}
}

// partitionHomes are the homes of a partition that were heard of since the instance has it.
type partitionHomes struct {
	grant     *processor.Partition
	partition string
	store     store
	homes     map[int]*document
	unsaved   map[int]*document // those with changes that are not stored yet
}

// document is the document of a home, and the version that is stored.
type document struct {
	aggregate
	stored version
}

// handle adds events to the documents and stores those that changed. It returns how many it
// stored. After an error it may be called with the same events again.
func (h *partitionHomes) handle(ctx context.Context, events []*client.Received) (saved int, err error) {
	for _, e := range events {
		r, err := parseReading(e.Body)
		if err != nil {
			return saved, err // it goes to the queue of unreadable ones, and the rest is handled
		}
		d := h.homes[r.Home]
		if d == nil {
			d = new(document)
			if d.aggregate, d.stored, err = h.store.load(ctx, r.Home); err != nil {
				return saved, err
			}
			h.homes[r.Home] = d
		}
		if d.apply(r, h.partition, e.SeqNo) {
			h.unsaved[r.Home] = d
		}
	}
	for home, d := range h.unsaved {
		v, err := h.store.save(ctx, d.aggregate, d.stored)
		if errors.Is(err, errReplaced) {
			delete(h.homes, home) // the next attempt begins with what is stored
			delete(h.unsaved, home)
		}
		if err != nil {
			return saved, err
		}
		d.stored = v
		delete(h.unsaved, home)
		saved++
	}
	return saved, nil
}
