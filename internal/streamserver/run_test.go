// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/vfs"
)

// start runs a hub on a disk until the test ends.
func start(t testing.TB, fs vfs.FS, set Settings, opts wal.Options) *Hub {
	t.Helper()
	w, err := wal.Open(fs, opts)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Open(t.Context(), w, 0, set, Options{OnDamage: func(d Damage) { t.Errorf("damage %v", d) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	journalCtx, stopJournal := context.WithCancel(context.WithoutCancel(t.Context()))
	wg.Go(func() { _ = w.Run(journalCtx) })
	wg.Go(func() {
		if err := h.Run(ctx); err != nil {
			t.Errorf("the hub stopped: %v", err)
		}
		stopJournal()
	})
	t.Cleanup(func() {
		stop()
		wg.Wait()
		if err := w.Close(); err != nil {
			t.Errorf("close the journal: %v", err)
		}
	})
	return h
}

// Producers and readers of all partitions at once: every event comes once and in order.
func TestManyAtOnce(t *testing.T) {
	const partitions, batches = 4, 500
	h := start(t, vfs.NewMem(), Settings{Partitions: partitions}, wal.Options{SegmentSize: 1 << 18})
	var wg sync.WaitGroup
	for p := range partitions {
		wg.Go(func() {
			window := make(chan struct{}, 10) // batches that are not acknowledged
			for i := range batches {
				window <- struct{}{}
				h.Append(&Append{Partition: p, Count: 2, Raw: body(p, int64(2*i), 2000), Done: func(seq stream.SeqNo, err error) {
					if err != nil || seq != stream.SeqNo(2*i) {
						t.Errorf("partition %d: batch %d has event %d, %v", p, i, seq, err)
					}
					<-window
				}})
			}
		})
		for g := range 2 {
			wg.Go(func() {
				r, err := h.OpenReader(t.Context(), ReaderOptions{Partition: p, Group: fmt.Sprint(g)})
				if err != nil {
					t.Error(err)
					return
				}
				defer r.Close()
				for next := stream.SeqNo(0); next < 2*batches; {
					got, err := r.Next(t.Context(), 10_000)
					if err != nil {
						t.Error(err)
						return
					}
					for _, b := range got {
						if b.First != next || string(b.Raw) != string(body(p, int64(b.First), 2000)) {
							t.Errorf("partition %d: event %d, want %d, %.40q", p, b.First, next, b.Raw)
							return
						}
						next += stream.SeqNo(b.Count)
					}
				}
			})
		}
	}
	wg.Wait()
	all, err := h.Info(t.Context())
	if err != nil || len(all) != partitions {
		t.Fatalf("%d partitions, %v", len(all), err)
	}
	for _, i := range all {
		if i.Last != 2*batches-1 || i.In.Events != 2*batches || i.In.Bytes != 2000*batches || i.In.Rate <= 0 {
			t.Errorf("%+v", i)
		}
	}
}

func TestCallersGiveUp(t *testing.T) {
	h := start(t, vfs.NewMem(), Settings{Partitions: 1}, wal.Options{})
	r, err := h.OpenReader(t.Context(), ReaderOptions{Group: "g", Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, why)
	defer cancel()
	for range 2 { // the question of the first call is still there
		if _, err := r.Next(ctx, 100); !errors.Is(err, why) {
			t.Fatalf("Next returned %v", err)
		}
	}
	h.Append(&Append{Raw: []byte("late"), Count: 1, Done: func(stream.SeqNo, error) {}})
	if got, err := r.Next(t.Context(), 100); err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	i, err := h.Partition(t.Context(), 0)
	if err != nil || len(i.Readers) != 1 || i.Readers[0].Name != "one" {
		t.Fatalf("%+v, %v", i, err)
	}
	done := make(chan error)
	go func() { // ends with Close
		_, err := r.Next(t.Context(), 100)
		done <- err
	}()
	r.Close()
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("Next returned %v after Close", err)
	}
	if i, _ := h.Partition(t.Context(), 0); len(i.Readers) != 0 {
		t.Errorf("%+v after Close", i.Readers)
	}
}
