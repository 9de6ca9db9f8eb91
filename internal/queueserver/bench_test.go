// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/vfs"
)

// BenchmarkInOut sends, receives and completes messages of 256 bytes on a real
// disk, every send and every completion synced before it is answered: 64 senders
// and 64 receivers over one queue in each of two shards.
func BenchmarkInOut(b *testing.B) { inOut(b, func() Observer { return nil }) }

func inOut(b *testing.B, observer func() Observer) {
	const peers, window = 64, 32
	store := openStore(b, 2)
	body := text(strings.Repeat("x", 256))
	var sent, completed atomic.Int64
	total := int64(b.N)
	var wg sync.WaitGroup
	ids := make([]ID, len(store.shards))
	for i, s := range store.shards {
		ids[i] = store.define(b, s, fmt.Sprint("queue", i))
		if o := observer(); o != nil {
			if err := s.Call(b.Context(), func(tx *Tx) error { return tx.Observe(ids[i], Main, o) }); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ResetTimer()
	for i := range peers {
		s, id := store.shards[i%len(store.shards)], ids[i%len(ids)]
		wg.Go(func() { // a sender with a window, as a client with credit has it
			slots := make(chan struct{}, window)
			for sent.Add(1) <= total {
				slots <- struct{}{}
				store.send(b, s, id, body, func() { <-slots })
			}
			for range window {
				slots <- struct{}{}
			}
		})
		store.receive(b, s, id, window, &completed)
	}
	wg.Wait()
	for completed.Load() < total {
		runtime.Gosched()
	}
	b.StopTimer()
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "msg/s")
	store.stop()
}

// store is a journal and shards that run.
type store struct {
	wal    *wal.WAL
	shards []*Shard
	stop   func()
}

func openStore(b *testing.B, n int) *store {
	b.Helper()
	w, err := wal.Open(vfs.OS(b.TempDir()), wal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	st := &store{wal: w}
	ctx, cancel := context.WithCancel(b.Context())
	var shards, log sync.WaitGroup
	for i := range n {
		s, err := Open(context.Background(), w, journal.Shard(i), Options{})
		if err != nil {
			b.Fatal(err)
		}
		st.shards = append(st.shards, s)
		shards.Go(func() { s.Run(ctx) })
	}
	logCtx, stopLog := context.WithCancel(context.WithoutCancel(ctx))
	log.Go(func() { w.Run(logCtx) })
	st.stop = func() {
		cancel()
		shards.Wait()
		stopLog()
		log.Wait()
		if err := w.Close(); err != nil {
			b.Error(err)
		}
	}
	return st
}

func (st *store) define(b *testing.B, s *Shard, name string) ID {
	b.Helper()
	got := make(chan ID, 1)
	if err := s.Define(Definition{Name: name}, map[SubQueue]queue.Config{Main: {LockFor: time.Minute}},
		func(id ID, err error) { got <- id }); err != nil {
		b.Fatal(err)
	}
	return <-got
}

func (st *store) send(b *testing.B, s *Shard, id ID, m *message.Message, done func()) {
	err := s.Send(&Send{
		Bodies: []*message.Message{m},
		Copies: []Copy{{ID: id, Arrival: queue.Arrival{Level: 4}}},
		Done: func(_ []queue.SeqNo, err error) {
			if err != nil {
				b.Error(err)
			}
			done()
		},
	})
	if err != nil {
		b.Error(err)
	}
}

func (st *store) receive(b *testing.B, s *Shard, id ID, window int, completed *atomic.Int64) {
	k := &completer{s: s, id: id, window: window, completed: completed}
	err := s.Attach(Attachment{ID: id, Sink: k}, func(c *Consumer, err error) {
		if err != nil {
			b.Error(err)
			return
		}
		k.c = c
		c.SetDeliveryLimit(uint64(window))
	})
	if err != nil {
		b.Error(err)
	}
}

// completer completes what it gets, as many at once as came at once.
type completer struct {
	s         *Shard
	c         *Consumer
	id        ID
	window    int
	seen      atomic.Uint64
	completed *atomic.Int64
}

func (k *completer) Deliver(ds []Delivery) {
	tokens := make([]queue.Token, len(ds))
	for i := range ds {
		tokens[i] = ds[i].Token
	}
	k.s.Settle(&Settle{ID: k.id, Tokens: tokens, Done: func(errs []error) {
		k.completed.Add(int64(len(tokens)))
		k.c.SetDeliveryLimit(k.seen.Add(uint64(len(tokens))) + uint64(k.window))
	}})
}

func (k *completer) Drained()      {}
func (k *completer) Ended(_ error) {}
