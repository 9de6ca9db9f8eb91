// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/queue"
)

// busyMonitor is a monitor that always has something to measure.
type busyMonitor struct{ Monitor }

func (busyMonitor) OnDue(fn func()) { fn() }
func (busyMonitor) Due() bool       { return false }
func (busyMonitor) Measure(time.Time, *queue.Queue) []objective.Change {
	return make([]objective.Change, 1)
}
func (busyMonitor) Memory() int64                                        { return 0 }
func (busyMonitor) Note(time.Time, time.Duration) (note []byte, ok bool) { return nil, false }

// Two measurements at a time share the queues that are due, and each of these is
// measured once.
func TestTwoMeasurementsAtATime(t *testing.T) {
	r := newRig(t, Options{NewMonitor: func(string, []byte, []byte) (Monitor, error) { return busyMonitor{}, nil }})
	const queues = measureAtOnce + 10 // more than one step measures
	for i := range queues {
		r.define(fmt.Sprint("q", i), minute)
	}
	answers, measured := 0, 0
	for range 2 {
		if err := Post(r.s, Measure{}, func(m []Measured, err error) {
			if err != nil {
				t.Error(err)
			}
			answers++
			measured += len(m)
		}); err != nil {
			t.Fatal(err)
		}
	}
	r.settle()
	if answers != 2 || measured != queues {
		t.Errorf("%d answers with %d queues, want 2 with %d", answers, measured, queues)
	}
}
