// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/stream"
)

func TestInfoShowsWhatReadersHaveNotGot(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	epoch := int64(3)
	old := r.reader(ReaderOptions{Group: "old", Name: "slow", Epoch: &epoch})
	r.reader(ReaderOptions{Group: "new", From: stream.Latest()})
	for range 200 {
		r.append(0, 10, 1000)
		r.now = r.now.Add(time.Second)
	}
	i := r.info(0)
	if i.First != 0 || i.Last != 1999 || i.Bytes != 200_000 || i.In.Events != 2000 || i.In.Bytes != 200_000 || len(i.Readers) != 2 {
		t.Fatalf("%+v", i)
	}
	x := i.Readers[1]
	if x.Group != "old" || x.Name != "slow" || *x.Epoch != 3 || x.LagEvents != 2000 || x.LagBytes != 200_000 || x.LagTime != 200*time.Second {
		t.Errorf("at the beginning: %+v", x)
	}
	r.drain(old, 0)
	i = r.info(0)
	if x = i.Readers[1]; x.Next != 2000 || x.LagEvents != 0 || x.LagBytes != 0 || x.LagTime != 0 || i.Out.Events != 2000 || i.Out.Bytes != 200_000 {
		t.Errorf("at the end: %+v, out %+v", x, i.Out)
	}
	if i.In.Rate < 5 || i.In.Rate > 15 { // ten a second
		t.Errorf("rate %v", i.In.Rate)
	}
}

// An idle hub sleeps, however many partitions and readers it has.
func TestAnIdleHubSleeps(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1024, RetainFor: time.Hour})
	for p := range 1024 {
		r.reader(ReaderOptions{Partition: p})
	}
	r.idle(5 * time.Second)
	if at, ok := r.h.NextDeadline(); ok {
		t.Errorf("it wakes up in %v", at.Sub(r.now))
	}
	if n := testing.AllocsPerRun(10, func() { r.h.Step(r.now) }); n > 0 {
		t.Errorf("a step makes %v allocations", n)
	}
}
