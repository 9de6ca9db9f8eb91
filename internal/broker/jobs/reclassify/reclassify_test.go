// SPDX-License-Identifier: Apache-2.0

package reclassify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/jobs"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/monitor"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// rig is a reclassifier that the test runs by hand, over one queue. No body is cached, so
// that the reclassifier reads each from the journal.
type rig struct {
	*catalog.Catalog
	t *testing.T
	r *Reclassifier
	n *catalog.Entity
	// reading is called before the next body is read, once: between the moment at
	// which a message was found and the one at which it is reclassified.
	reading func()
	// marked is called when the end of a reclassification is durable, once.
	marked func()
}

// Changed implements catalog.Observer.
func (r *rig) Changed(n *catalog.Entity) {
	if def := n.Definition(); r.r != nil && def.Classified != def.PolicyRevision {
		r.r.Add(n)
	}
}

// Removed implements catalog.Observer.
func (r *rig) Removed(*catalog.Entity) {}

// MarkClassified implements Catalog.
func (r *rig) MarkClassified(ctx context.Context, n *catalog.Entity, by *catalog.Classifier) error {
	err := r.Catalog.MarkClassified(ctx, n, by)
	if fn := r.marked; fn != nil {
		r.marked = nil
		fn()
	}
	return err
}

// watched is a journal that tells of reads.
type watched struct {
	journal.Journal
	r *rig
}

func (w watched) Read(ctx context.Context, reads []journal.Read) {
	if fn := w.r.reading; fn != nil {
		w.r.reading = nil
		fn()
	}
	w.Journal.Read(ctx, reads)
}

func start(t *testing.T) *rig {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	w, err := wal.Open(vfs.NewMem(), wal.Options{SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s, err := queueserver.Open(t.Context(), w, 0, queueserver.Options{CacheBytes: 1, NewMonitor: monitor.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t}
	s.Engine.Manual().SetJournal(watched{w, r})
	if r.Catalog, err = catalog.Open([]*queueserver.Shard{s}, nil, s.Clock(), log, r); err != nil {
		t.Fatal(err)
	}
	r.r = New(r, jobs.New(), log)
	upper, stopUpper := context.WithCancel(context.WithoutCancel(t.Context()))
	lower, stopLower := context.WithCancel(context.WithoutCancel(t.Context()))
	var up, low sync.WaitGroup
	up.Go(func() { s.Run(upper) })
	low.Go(func() { w.Run(lower) })
	t.Cleanup(func() {
		stopUpper()
		up.Wait()
		stopLower()
		low.Wait()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := r.CreateQueue(t.Context(), entity.Queue{Name: "q"}); err != nil {
		t.Fatal(err)
	}
	r.n = r.Entity("q")
	return r
}

// policy gives the queue a policy by which every message has a level.
func (r *rig) policy(level int) {
	r.t.Helper()
	raw := fmt.Appendf(nil, `{"classes": [{"name": "all", "level": %d}]}`, level)
	if _, err := r.ReplacePolicy(r.t.Context(), "q", raw); err != nil {
		r.t.Fatal(err)
	}
}

// send stores a message that was classified by a definition, which may be an old one.
func (r *rig) send(by *catalog.Definition, m *message.Message) {
	r.t.Helper()
	sent := make(chan error, 1)
	err := r.n.Shard.Send(&queueserver.Send{
		Bodies: []*message.Message{m},
		Copies: []queueserver.Copy{{ID: r.n.ID, Arrival: by.Arrival(m, 0), Revision: by.PolicyRevision}},
		Done:   func(_ []queue.SeqNo, err error) { sent <- err },
	})
	if err == nil {
		err = <-sent
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func text(body string) *message.Message {
	d := message.Draft{Body: []byte(body)}
	return d.Message()
}

// run runs the job until it has nothing to do.
func (r *rig) run() {
	r.t.Helper()
	for {
		next, err := r.r.Run(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		if next == (jobs.Next{}) {
			return
		}
	}
}

// wantLevels checks the levels of all messages, by number.
func (r *rig) wantLevels(want ...queue.Level) {
	r.t.Helper()
	found, err := queueserver.Do(r.t.Context(), r.n.Shard, queueserver.Peek{Queue: r.n.QueueID(queueserver.Main), Max: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	var got []queue.Level
	for _, d := range found.Messages {
		got = append(got, d.Level)
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("levels %v, want %v", got, want)
	}
	if def := r.n.Definition(); def.Classified != def.PolicyRevision {
		r.t.Errorf("classified by revision %d of %d", def.Classified, def.PolicyRevision)
	}
}

// A sender that had loaded the old policy stores a message behind what a pass looks at.
func TestMessageOfTheOldPolicyHasAnotherPass(t *testing.T) {
	r := start(t)
	r.policy(8)
	r.run()
	old := r.n.Definition()
	r.send(old, text("before"))
	r.policy(2)
	r.reading = func() { r.send(old, text("late")) }
	r.run()
	r.wantLevels(2, 2)
}

// The policy is replaced once more while messages are reclassified by it.
func TestPolicyReplacedInTheMiddleOfAPass(t *testing.T) {
	r := start(t)
	r.policy(8)
	r.run()
	old := r.n.Definition()
	r.send(old, text("before"))
	r.policy(2)
	r.reading = func() {
		r.send(old, text("late"))
		r.policy(5)
		r.send(old, text("later"))
	}
	r.run()
	r.wantLevels(5, 5, 5)
}

// A scheduled message gets another number when its time comes: it must not escape by that.
func TestScheduledMessageActivatedInTheMiddleOfAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.policy(8)
		r.run()
		d := message.Draft{Body: []byte("m"), Annotations: []message.Pair{{
			Name: message.AnnotationScheduledEnqueueTime, Value: codec.Timestamp(time.Now().Add(time.Minute))}}}
		r.send(r.n.Definition(), d.Message())
		r.policy(2)
		r.reading = func() {
			time.Sleep(2 * time.Minute)
			synctest.Wait()
		}
		r.run()
		r.wantLevels(2)
	})
}

// A caller that waits for a policy is not told of the end of the one before it.
func TestWaitIsForTheLastPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.send(r.n.Definition(), text("m"))
		r.policy(2)
		done := make(chan error, 1)
		r.marked = func() {
			r.policy(5)
			go func() { done <- r.r.Wait(t.Context(), r.n) }()
			synctest.Wait()
		}
		if _, err := r.r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("Wait returned %v, and the messages have the class of the policy before", err)
		default:
		}
		r.run()
		r.wantLevels(5)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// After the end of the jobs no queue is classified any more, and no caller waits for it.
func TestWaitAfterTheEndOfTheJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.send(r.n.Definition(), text("m"))
		r.policy(2)
		r.r.Finish(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := r.r.Wait(ctx, r.n); !errors.Is(err, catalog.ErrStopping) {
			t.Errorf("Wait returned %v, want %v", err, catalog.ErrStopping)
		}
	})
}

// A queue whose messages take long does not hold up that of another owner, and is done after it.
func TestQueuesHaveTheirTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, each = 200, 10 * time.Millisecond
		r := start(t)
		for range many {
			r.send(r.n.Definition(), text("m"))
		}
		if _, err := r.CreateQueue(t.Context(), entity.Queue{Name: "other"}); err != nil {
			t.Fatal(err)
		}
		var slow func()
		slow = func() {
			time.Sleep(each)
			r.reading = slow
		}
		r.reading = slow
		r.policy(2)
		if _, err := r.ReplacePolicy(t.Context(), "other", []byte(`{"classes": [{"name": "all", "level": 2}]}`)); err != nil {
			t.Fatal(err)
		}
		done, began := make(chan error, 1), time.Now()
		go func() { done <- r.r.Wait(t.Context(), r.Entity("other")) }()
		synctest.Wait()
		for over := false; !over; {
			if _, err := r.r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			select {
			case err := <-done:
				if over = true; err != nil {
					t.Error(err)
				}
			default:
			}
		}
		if took := time.Since(began); took > 2*sliceTime {
			t.Errorf("an empty queue waited for %v of others", took)
		}
		r.run()
		var want []queue.Level
		for range 100 {
			want = append(want, 2)
		}
		r.wantLevels(want...)
		if n := len(r.r.passes) + len(r.r.owners) + len(r.r.lines); n != 0 {
			t.Errorf("%d queues are kept in line", n)
		}
	})
}

// A caller that has gone is forgotten, and a queue is in line once, however often its policy is
// replaced.
func TestCallersThatLeaveAreForgotten(t *testing.T) {
	r := start(t)
	for level := range 100 {
		r.policy(1 + level)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		if err := r.r.Wait(ctx, r.n); !errors.Is(err, gone) {
			t.Fatal(err)
		}
	}
	if len(r.r.callers) != 0 || len(r.r.passes) != 1 {
		t.Errorf("%d queues have callers that have gone, %d are in line", len(r.r.callers), len(r.r.passes))
	}
	r.run()
	if def := r.n.Definition(); def.Classified != def.PolicyRevision {
		t.Error("not classified")
	}
}

// Dry runs of an expensive policy, of which there may be many, take turns for a processor.
func TestExpensiveDryRunsWaitForAProcessor(t *testing.T) {
	r := start(t)
	for range 3 {
		d := message.Draft{Application: []message.Pair{{Name: "p", Value: codec.String(strings.Repeat("a", 30_000))}}}
		r.send(r.n.Definition(), d.Message())
	}
	for _, x := range []struct {
		sql   string
		turns int // the first message shows that it is expensive
	}{{"p LIKE '%_a_a_a_a_b_%'", 2}, {"p = 'a'", 0}} {
		p, err := catalog.ParsePolicy(fmt.Appendf(nil, `{"classes": [{"name": "a", "level": 1, "when": %q}]}`, x.sql))
		if err != nil {
			t.Fatal(err)
		}
		taken, left := 0, 0
		run, err := Preview(t.Context(), r.n, p, func() func() { taken++; return func() { left++ } })
		if err != nil || run.Looked != 3 || taken != x.turns || left != taken {
			t.Errorf("%s: examined %d, %d turns of which %d ended, want %d; %v", x.sql, run.Looked, taken, left, x.turns, err)
		}
	}
}
