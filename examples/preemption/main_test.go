// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
	"github.com/triagemq/triagemq/worker"
)

// output can be read while it is written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// The high message is done while all low tasks are not; the one that made way goes on
// where it was; none runs twice. The steps of this test wait for each other, not for time.
func TestHighMessageDoesNotWait(t *testing.T) {
	yaml, err := os.ReadFile("triagemq.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b := triagetest.Start(t, string(yaml))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out output
	var mu sync.Mutex
	counted := map[string][]int{}
	step := func(ctx context.Context, task *worker.Task, number int) error {
		mu.Lock()
		counted[string(task.Body)] = append(counted[string(task.Body)], number)
		mu.Unlock()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		if task.Priority == client.High { // until a low task has made way
			for !strings.Contains(out.String(), "makes way") {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return nil
		}
		for number == 2 && !strings.Contains(out.String(), "high   done") {
			if err := task.Yield(ctx); err != nil {
				return err
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
	if err := newShow(b.Client(), &out, 4, 60, step).run(ctx); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for name, want := range map[string]int{"low-1": 60, "low-2": 60, "low-3": 60, "low-4": 60, "high": 1} {
		for i := range want {
			if len(counted[name]) != want || counted[name][i] != i+1 {
				t.Fatalf("%s counted %v, want 1 to %d once", name, counted[name], want)
			}
		}
	}
	text := out.String()
	if strings.Count(text, "makes way") != 1 || strings.Count(text, "goes on after") != 1 || strings.Count(text, "started") != 5 {
		t.Errorf("want one that makes way and goes on, and five starts:\n%s", text)
	}
	// In the order of the lines: the high task ends before any low one does.
	high := strings.Index(text, "high   done")
	for i := range 4 {
		if low := strings.Index(text, fmt.Sprintf("low-%d  done", i+1)); high < 0 || low < high {
			t.Errorf("low-%d ended before the high message:\n%s", i+1, text)
		}
	}
}
