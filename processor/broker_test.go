// SPDX-License-Identifier: Apache-2.0

package processor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/processor"
	"github.com/triagemq/triagemq/triagetest"
)

const hubs = `
queues: [{name: dead}]
hubs: [{name: readings, partitionCount: 8, consumerGroups: [{name: audit}]}, {name: small, partitionCount: 1, maxPartitionSizeInMegabytes: 1}]
`

// realFleet is processors at a real broker.
type realFleet struct {
	t      *testing.T
	broker *triagetest.Broker
	sent   int
	all    []*realInstance

	mu      sync.Mutex
	changed chan struct{}  // closed and replaced with each event; guarded by mu
	seen    map[string]int // by key; guarded by mu
}

type realInstance struct {
	processor.Processor
	cancel context.CancelFunc
	ended  chan error
	err    error
}

func newRealFleet(t *testing.T) *realFleet {
	return &realFleet{t: t, broker: triagetest.Start(t, hubs), changed: make(chan struct{}), seen: map[string]int{}}
}

func (f *realFleet) publish(each int) {
	f.t.Helper()
	c := f.broker.Client()
	for p := range 8 {
		s, err := c.OpenSender(f.t.Context(), fmt.Sprint("readings/Partitions/", p), nil)
		if err != nil {
			f.t.Fatal(err)
		}
		var ms []*client.Message
		for range each {
			ms = append(ms, &client.Message{Body: []byte("reading")})
		}
		if err := s.SendBatch(f.t.Context(), ms); err != nil {
			f.t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			f.t.Fatal(err)
		}
		f.sent += each
	}
}

func (f *realFleet) start(set func(*processor.Processor)) *realInstance {
	i := &realInstance{ended: make(chan error, 1)}
	i.Client, i.Hub, i.Log = f.broker.Client(), "readings", slog.New(slog.DiscardHandler)
	i.ID = fmt.Sprint("instance-", len(f.all))
	i.OnError = func(err error) {
		if f.t.Context().Err() == nil {
			f.t.Log(i.ID, err)
		}
	}
	i.Handle = func(_ context.Context, p *processor.Partition, events []*client.Received) error {
		f.note(p, events)
		return nil
	}
	if set != nil {
		set(&i.Processor)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	i.cancel = cancel
	go func() {
		i.err = i.Run(ctx)
		close(i.ended)
	}()
	f.t.Cleanup(func() { i.cancel(); <-i.ended })
	f.all = append(f.all, i)
	return i
}

func (f *realFleet) note(p *processor.Partition, events []*client.Received) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		f.seen[p.Key(e)]++
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// until waits until something is so.
func (f *realFleet) until(what string, is func() bool) {
	f.t.Helper()
	late := time.After(30 * time.Second)
	for tick := time.Tick(5 * time.Millisecond); !is(); {
		select {
		case <-tick:
		case <-late:
			f.t.Fatalf("not %s: %v", what, f.counts())
		}
	}
}

func (f *realFleet) counts() (out []int) {
	for _, i := range f.all {
		out = append(out, len(i.Status().Partitions))
	}
	return out
}

func (f *realFleet) balanced(want ...int) func() bool {
	return func() bool { return fmt.Sprint(f.counts()) == fmt.Sprint(want) }
}

func (f *realFleet) handledAll() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.seen) == f.sent
}

// sees reports whether an event was handled, and how many were in all.
func (f *realFleet) sees(key string) (is bool, all int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[key] > 0, len(f.seen)
}

// again returns how many events were handled more than once.
func (f *realFleet) again() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, times := range f.seen {
		if times > 1 {
			n++
		}
	}
	return n
}

func (f *realFleet) stop(i *realInstance) {
	f.t.Helper()
	i.cancel()
	<-i.ended
	if i.err != nil {
		f.t.Errorf("%s: %v", i.ID, i.err)
	}
}

// Instances come and go; no event is handled twice.
func TestPlannedMovesRepeatNothing(t *testing.T) {
	f := newRealFleet(t)
	f.publish(50)
	a := f.start(nil)
	f.until("one with all", f.balanced(8))
	f.publish(50)
	b := f.start(nil)
	f.until("two with four each", f.balanced(4, 4))
	f.publish(50)
	f.start(nil)
	f.until("three", func() bool { c := f.counts(); return c[2] == 2 && c[0]+c[1] == 6 })
	f.publish(50)
	f.stop(a)
	f.until("two with four each", f.balanced(0, 4, 4))
	f.publish(50)
	f.stop(b)
	f.until("one with all", f.balanced(0, 0, 8))
	f.publish(50)
	f.until("all events handled", f.handledAll)
	if n := f.again(); n != 0 {
		t.Errorf("%d events were handled twice", n)
	}
	began := time.Now()
	f.stop(f.all[2])
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
}

// The broker crashes and comes back: instances keep their partitions.
func TestABrokerThatCrashes(t *testing.T) {
	f := newRealFleet(t)
	patient := func(p *processor.Processor) {
		c, err := client.New(f.broker.ConnectionString(), &client.Options{RetryTimeout: math.MaxInt64})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		p.Client = c
	}
	f.publish(50)
	f.start(patient)
	f.start(patient)
	f.until("two with four each", f.balanced(4, 4))
	f.until("all events handled", f.handledAll)
	f.broker.Crash()
	f.publish(50)
	f.until("all events handled", f.handledAll)
	f.until("two with four each", f.balanced(4, 4))
}

func TestAnInstanceWithTheSameIDTakesTheOthersPlace(t *testing.T) {
	f := newRealFleet(t)
	same := func(p *processor.Processor) { p.ID = "the-same" }
	first := f.start(same)
	f.until("one with all", f.balanced(8))
	f.start(same)
	<-first.ended
	if !errors.Is(first.err, client.ErrTaken) {
		t.Errorf("first: %v, want %v", first.err, client.ErrTaken)
	}
	f.until("the second with all", f.balanced(0, 8))
}

func TestRewindOfTheFleet(t *testing.T) {
	f := newRealFleet(t)
	f.publish(10)
	i := f.start(nil)
	f.until("all events handled", f.handledAll)
	f.until("all in checkpoints", func() bool {
		for _, p := range i.Status().Partitions {
			if p.Checkpoint != 9 {
				return false
			}
		}
		return true
	})
	for _, to := range []processor.Position{processor.FromSequence(4), processor.Earliest()} {
		f.mu.Lock()
		clear(f.seen)
		f.mu.Unlock()
		if err := i.Rewind(t.Context(), "3", to); err != nil {
			t.Fatal(err)
		}
		want := 6
		if to == processor.Earliest() {
			want = 10
		}
		f.until("the events again", func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return len(f.seen) == want
		})
	}
}

func TestPoisonGoesToAQueueOfTheBroker(t *testing.T) {
	f := newRealFleet(t)
	f.publish(5)
	f.start(func(p *processor.Processor) {
		p.DeadLetter, p.Attempts = "dead", 1
		p.Handle = func(_ context.Context, p *processor.Partition, events []*client.Received) error {
			for _, e := range events {
				if p.ID() == "2" && e.SeqNo == 3 {
					return errors.New("cannot do three")
				}
			}
			f.note(p, events)
			return nil
		}
	})
	r, err := f.broker.Client().OpenReceiver(t.Context(), "dead", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Receive(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if m := got[0]; m.ID != "readings/2/3" || m.Properties["triagemq-partition"] != "2" || string(m.Body) != "reading" {
		t.Errorf("dead letter %q %v %q", m.ID, m.Properties, m.Body)
	}
	f.sent--
	f.until("all others handled", f.handledAll)
}

func TestTheBrokerAsAStore(t *testing.T) {
	f := newRealFleet(t)
	store := func(p *processor.Processor) {
		p.Store, p.Strategy, p.Interval = processor.NewBrokerStore(p.Client), processor.Greedy, 200*time.Millisecond
		p.Group = "audit"
	}
	f.publish(20)
	a := f.start(store)
	f.until("one with all", f.balanced(8))
	f.until("all events handled", f.handledAll)
	f.start(store)
	f.until("two with four each", f.balanced(4, 4))
	f.publish(20)
	f.until("all events handled", f.handledAll)
	f.stop(a)
	f.until("one with all", f.balanced(0, 8))
	if err := a.Rewind(t.Context(), "0", processor.Earliest()); !errors.Is(err, processor.ErrNotRunning) {
		t.Errorf("rewind of one that was stopped: %v", err)
	}
	f.mu.Lock()
	clear(f.seen)
	f.mu.Unlock()
	for _, i := range f.all[1:] {
		if err := i.Rewind(t.Context(), "0", processor.Earliest()); err != nil {
			t.Fatal(err)
		}
	}
	f.until("the partition's events again", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.seen) == 40
	})
}

// Partitions that never had an event have a place too: the owner after the first one skips
// nothing that came meanwhile.
func TestLatestOfAHubWithoutEvents(t *testing.T) {
	for name, set := range map[string]func(*processor.Processor){
		"coordinated": func(*processor.Processor) {},
		"store": func(p *processor.Processor) {
			p.Store, p.Strategy, p.Interval = processor.NewBrokerStore(p.Client), processor.Greedy, 200*time.Millisecond
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newRealFleet(t)
			latest := func(p *processor.Processor) {
				set(p)
				p.Start, p.Checkpoint = processor.Latest(), processor.ByHand()
			}
			a := f.start(latest)
			f.until("a place of each partition", func() bool {
				saved, err := f.broker.Client().Group("readings", "").Checkpoints(t.Context())
				return err == nil && len(saved) == 8 && saved[0].SeqNo == client.BeforeFirst
			})
			f.stop(a)
			f.publish(5)
			f.start(latest)
			f.until("all events handled", f.handledAll)
		})
	}
}

// A processor that comes back behind the retention says how many events are gone.
func TestAGapAtTheBroker(t *testing.T) {
	f := newRealFleet(t)
	publish := func(batches int) {
		s, err := f.broker.Client().OpenSender(t.Context(), "small/Partitions/0", nil)
		if err != nil {
			t.Fatal(err)
		}
		for range batches {
			ms := make([]*client.Message, 10)
			for i := range ms {
				ms[i] = &client.Message{Body: make([]byte, 10_000)}
			}
			if err := s.SendBatch(t.Context(), ms); err != nil {
				t.Fatal(err)
			}
		}
	}
	gaps := make(chan *processor.GapError, 10)
	set := func(p *processor.Processor) {
		p.Hub = "small"
		p.OnError = func(err error) {
			if g, ok := errors.AsType[*processor.GapError](err); ok {
				gaps <- g
			}
		}
	}
	publish(1)
	first := f.start(set)
	f.until("the first events", func() bool { is, _ := f.sees("small/0/9"); return is })
	f.stop(first)
	publish(100) // ten megabytes, of which one is kept
	second := f.start(set)
	f.until("the last event", func() bool { is, _ := f.sees("small/0/1009"); return is })
	g := <-gaps
	if g.After != 9 || g.Next < 100 || g.Events() != int64(g.Next)-10 || g.Partition != "0" || g.Hub != "small" || g.StandsStill {
		t.Errorf("gap %+v of %d events", g, g.Events())
	}
	if _, n := f.sees(""); int64(n) != 1010-g.Events() {
		t.Errorf("%d events were handled and %d are gone, of 1010", n, g.Events())
	}
	if len(gaps) > 0 || second.Status().Skipped != uint64(g.Events()) {
		t.Errorf("%d more gaps, %d events skipped", len(gaps), second.Status().Skipped)
	}
}
