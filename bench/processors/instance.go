// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/processor"
)

// instanceVariable makes the program one instance. It has instanceSettings as JSON.
const instanceVariable = "TRIAGEMQ_BENCH_INSTANCE"

type instanceSettings struct {
	Connection, Hub, Store, Name string
	Greedy                       bool
	Count                        int           // of events, to measure speed; 0: tell of each
	Slow                         time.Duration // a call of the handler in the first ten seconds
}

// interval is how often store mode and the SDK look at their store.
const interval = time.Second

// say writes a line to the standard output, which the parent reads:
//
//	up
//	own PARTITION
//	lost PARTITION
//	event PARTITION FIRST LAST
//	rate EVENTS-PER-SECOND
func say(words ...any) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(words...)
}

var saying sync.Mutex

// runInstance is the whole program of an instance. It stops when its standard input ends.
func runInstance(text string) {
	var s instanceSettings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		log.Fatal(err)
	}
	c, err := client.New(s.Connection, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	p := &processor.Processor{Client: c, Hub: s.Hub, ID: s.Name, Log: slog.New(slog.DiscardHandler), OnError: func(error) {}}
	p.Handle = func(_ context.Context, p *processor.Partition, events []*client.Received) error {
		say("event", p.ID(), int64(events[0].SeqNo), int64(events[len(events)-1].SeqNo))
		return nil
	}
	if s.Store != "" {
		p.Store, p.Interval = remoteStore(s.Store), interval
		if s.Greedy {
			p.Strategy = processor.Greedy
		}
	}
	if s.Count > 0 {
		p.Handle = counter(s.Count, s.Slow)
	} else {
		go watch(ctx, p)
	}
	say("up")
	if err := p.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// counter returns a handler that does nothing, and tells the rate at which it was called. For
// ten seconds it may be slow, so that events are fetched ahead.
func counter(count int, slow time.Duration) func(context.Context, *processor.Partition, []*client.Received) error {
	var seen atomic.Int64
	var began atomic.Pointer[time.Time]
	return func(_ context.Context, _ *processor.Partition, events []*client.Received) error {
		if now := time.Now(); began.Load() == nil {
			began.CompareAndSwap(nil, &now)
		}
		if slow > 0 && time.Since(*began.Load()) < 10*time.Second {
			time.Sleep(slow)
		}
		if seen.Add(int64(len(events))) == int64(count) {
			say("rate", int(float64(count)/time.Since(*began.Load()).Seconds()))
		}
		return nil
	}
}

// watch tells which partitions the instance has.
func watch(ctx context.Context, p *processor.Processor) {
	had := map[string]bool{}
	for ctx.Err() == nil {
		has := map[string]bool{}
		for _, s := range p.Status().Partitions {
			if has[s.ID] = true; !had[s.ID] {
				say("own", s.ID)
			}
		}
		for id := range had {
			if !has[id] {
				say("lost", id)
			}
		}
		had = has
		time.Sleep(5 * time.Millisecond)
	}
}
