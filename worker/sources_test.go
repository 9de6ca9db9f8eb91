// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/worker"
)

// A pool serves the sources that exist, whichever is missing, and the missing one as soon as
// it is there.
func TestMissingSourceDoesNotStopTheOthers(t *testing.T) {
	for _, c := range []struct {
		rule       worker.Selection
		extensions bool
	}{{worker.ByOrder, true}, {worker.ByLevel, true}, {worker.ByWeight, true}, {worker.ByOrder, false}, {worker.ByWeight, false}} {
		for _, gone := range [][]string{{"a"}, {"b"}, {"c"}, {"a", "c"}, {"b", "c"}} {
			t.Run(fmt.Sprint(c.rule, c.extensions, gone), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newModelBroker(1)
					b.extensions = c.extensions
					p := modelPool(b)
					p.Source, p.Sources, p.Select = "", []worker.Source{{Entity: "a"}, {Entity: "b"}, {Entity: "c"}}, c.rule
					p.Preempt, p.Slots = &worker.Preemption{}, 2
					log := logged(p)
					for _, s := range gone {
						b.setMissing(s, true)
					}
					stop := run(t, p)
					time.Sleep(10 * time.Second)
					for _, s := range []string{"a", "b", "c"} {
						b.send(s, "early", 4)
					}
					time.Sleep(1100 * time.Millisecond) // between two polls, where the broker cannot wait
					wantCompleted(t, p, uint64(3-len(gone)), "with missing sources")
					if s := p.Status(); s.Idle != "" {
						t.Errorf("the pool says %q", s.Idle)
					}
					time.Sleep(time.Minute)
					for _, s := range gone {
						b.setMissing(s, false)
					}
					time.Sleep(5 * time.Second)
					wantCompleted(t, p, 3, "with all sources")
					for _, line := range []string{"a source does not exist", "a source exists now"} {
						if n := strings.Count(log.String(), line); n != len(gone) {
							t.Errorf("%q is logged %d times:\n%s", line, n, log)
						}
					}
					if strings.Contains(log.String(), "waiting for") {
						t.Errorf("the log says that the pool waits:\n%s", log)
					}
					if err := stop(); err != nil || b.open != 0 {
						t.Errorf("%v, %d receivers are left open", err, b.open)
					}
				})
			})
		}
	}
}

// Sources that are all missing are waited for, and so is one that turns up first.
func TestAllSourcesAreMissing(t *testing.T) {
	for _, extensions := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newModelBroker(1)
			b.extensions = extensions
			p := modelPool(b)
			p.Source, p.Sources = "", []worker.Source{{Entity: "a"}, {Entity: "b"}}
			log := logged(p)
			b.setMissing("a", true)
			b.setMissing("b", true)
			b.send("b", "x", 4)
			run(t, p)
			time.Sleep(time.Minute)
			if s := p.Status(); s.Idle != "waiting for a source that does not exist yet" {
				t.Errorf("the pool says %q", s.Idle)
			}
			b.setMissing("b", false)
			time.Sleep(10 * time.Second)
			wantCompleted(t, p, 1, "with the second source")
			if n := strings.Count(log.String(), "waiting for a source"); n != 1 {
				t.Errorf("said %d times that it waits:\n%s", n, log)
			}
		})
	}
}

// An urgent message of a source that was missing preempts as any other.
func TestSourceThatAppearsPreempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		p := modelPool(b)
		p.Source, p.Sources, p.Preempt = "", []worker.Source{{Entity: "a"}, {Entity: "b"}}, &worker.Preemption{}
		urgent := make(chan struct{})
		p.Handler = worker.HandlerFunc(func(ctx context.Context, task *worker.Task) error {
			if task.Source == "a" {
				close(urgent)
				return nil
			}
			for {
				if err := task.Yield(ctx); err != nil {
					return err
				}
				select {
				case <-urgent:
					return nil
				case <-time.After(time.Second):
				}
			}
		})
		b.setMissing("a", true)
		b.send("b", "long", 4)
		run(t, p)
		time.Sleep(time.Minute)
		b.setMissing("a", false)
		b.send("a", "urgent", 4)
		time.Sleep(10 * time.Second)
		wantCompleted(t, p, 2, "with the first source")
	})
}
