// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/jobs"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// nobody follows changes of entities.
type nobody struct{}

func (nobody) Changed(*catalog.Entity) {}
func (nobody) Removed(*catalog.Entity) {}

// start runs a catalog on one shard, and a runner, until the test ends.
func start(t *testing.T) (*catalog.Catalog, *jobs.Runner) {
	t.Helper()
	w, err := wal.Open(vfs.NewMem(), wal.Options{SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s, err := queueserver.Open(t.Context(), w, 0, queueserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open([]*queueserver.Shard{s}, nil, s.Clock(), slog.New(slog.DiscardHandler), nobody{})
	if err != nil {
		t.Fatal(err)
	}
	runner := jobs.New()
	var stops []func()
	for _, run := range []func(context.Context){
		func(ctx context.Context) { w.Run(ctx) },
		func(ctx context.Context) { s.Run(ctx) },
		runner.Run,
	} {
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		var done sync.WaitGroup
		done.Go(func() { run(ctx) })
		stops = append([]func(){func() { stop(); done.Wait() }}, stops...)
	}
	t.Cleanup(func() {
		for _, stop := range stops {
			stop()
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, runner
}

// What a forwarder is given after it was stopped goes back at once, and nothing counts
// against it: a delivery that was under way, or a message that its target has refused
// permanently.
func TestStoppedForwarderGivesBackWhatStillComes(t *testing.T) {
	for name, give := range map[string]func(*forwarder, queueserver.Delivery){
		"delivered":           func(m *forwarder, d queueserver.Delivery) { m.Deliver([]queueserver.Delivery{d}) },
		"refused permanently": func(m *forwarder, d queueserver.Delivery) { m.failed(&d, catalog.ErrTooLarge) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, runner := start(t)
				if _, err := c.CreateQueue(t.Context(), entity.Queue{Name: "q"}); err != nil {
					t.Fatal(err)
				}
				n := c.Entity("q")
				draft := message.Draft{Body: []byte("m")}
				sent := make(chan error, 1)
				c.Send(n, []*message.Message{draft.Message()}, catalog.SendOptions{}, func(_ []queue.SeqNo, err error) { sent <- err })
				if err := <-sent; err != nil {
					t.Fatal(err)
				}
				tokens, err := queueserver.Do(t.Context(), n.Shard, queueserver.LockMessages{Queue: n.QueueID(queueserver.Main), Seqs: []queue.SeqNo{1}})
				if err != nil {
					t.Fatal(err)
				}

				m := &forwarder{ms: New(c, runner), source: source{n, queueserver.Main}, window: Window}
				m.job = runner.Add(m)
				m.stop()
				give(m, queueserver.Delivery{Delivery: queue.Delivery{Seq: 1, Token: tokens[0]}})
				synctest.Wait()

				got, err := queueserver.Do(t.Context(), n.Shard, queueserver.Peek{Queue: n.QueueID(queueserver.Main), Max: 1})
				if err != nil {
					t.Fatal(err)
				}
				if d := got.Messages[0]; d.State != queue.Ready || d.Failures != 0 {
					t.Errorf("the message is in state %v with %d failures, want it back in its place", d.State, d.Failures)
				}
			})
		})
	}
}

// holding is a catalog whose targets answer when they are told to.
type holding struct {
	*catalog.Catalog

	mu   sync.Mutex
	held []func() // guarded by mu
	size int64    // of their messages; guarded by mu
	most int64    // guarded by mu
}

func (h *holding) Send(n *catalog.Entity, batch []*message.Message, o catalog.SendOptions, done func([]queue.SeqNo, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	size := int64(batch[0].Size())
	h.size += size
	h.most = max(h.most, h.size)
	h.held = append(h.held, func() {
		h.mu.Lock()
		h.size -= size
		h.mu.Unlock()
		h.Catalog.Send(n, batch, o, done)
	})
}

// answer lets all that are held go on, and returns how many there were.
func (h *holding) answer() int {
	h.mu.Lock()
	held := h.held
	h.held = nil
	h.mu.Unlock()
	for _, f := range held {
		f()
	}
	return len(held)
}

// However slow targets are, and however many forwarders there are, the bytes that are under way
// are bounded, and everything arrives.
func TestBytesUnderWayAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, runner := start(t)
		const size, messages = 250 << 10, 60
		queues := []string{"a", "b", "c"}
		if _, err := c.CreateQueue(t.Context(), entity.Queue{Name: "to", MaxSizeInMegabytes: 1024}); err != nil {
			t.Fatal(err)
		}
		draft := message.Draft{Body: make([]byte, size)}
		for _, name := range queues {
			if _, err := c.CreateQueue(t.Context(), entity.Queue{Name: name, ForwardTo: "to"}); err != nil {
				t.Fatal(err)
			}
			for range messages {
				sent := make(chan error, 1)
				c.Send(c.Entity(name), []*message.Message{draft.Message()}, catalog.SendOptions{}, func(_ []queue.SeqNo, err error) { sent <- err })
				if err := <-sent; err != nil {
					t.Fatal(err)
				}
			}
		}
		h := &holding{Catalog: c}
		ms := New(h, runner)
		for _, name := range queues {
			ms.Watch(c.Entity(name))
		}
		moved := 0
		for {
			synctest.Wait()
			n := h.answer()
			if n == 0 {
				break
			}
			moved += n
		}
		if moved != messages*len(queues) {
			t.Errorf("%d messages were moved, want %d", moved, messages*len(queues))
		}
		if h.most > underWay || h.most < underWay/2 {
			t.Errorf("%d bytes were under way, at most %d may be", h.most, underWay)
		}
		if used := ms.space.Used(); used != 0 {
			t.Errorf("%d bytes stay charged", used)
		}
	})
}
