// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
	"github.com/triagemq/triagemq/worker"
)

// A pool grows with the demand that the broker measures, has no slot while there is
// nothing to do, and works on what comes then.
func TestPoolScalesToTheDemandAndToZero(t *testing.T) {
	b := triagetest.Start(t, "queues: [{name: tasks, policy: {classes: [{name: all, level: 4, objective: {wait: 1s}}]}}]")
	c := b.Client()
	p := &worker.Pool{
		Client: c, Source: "tasks", Scale: &worker.Scale{Min: 0, Max: 4, CoolDown: time.Second / 2},
		Handler: worker.HandlerFunc(func(ctx context.Context, _ *worker.Task) error {
			select {
			case <-time.After(50 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}),
	}
	s, err := c.OpenSender(t.Context(), "tasks", nil)
	if err != nil {
		t.Fatal(err)
	}
	send := func(n int) {
		t.Helper()
		for i := range n {
			if err := s.Send(t.Context(), &client.Message{Body: fmt.Append(nil, i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(100)
	run(t, p)
	eventually(t, "4 slots", func() bool { return p.Status().Slots == 4 })
	eventually(t, "100 completed", func() bool { return p.Status().Completed == 100 })
	eventually(t, "no slots", func() bool { return p.Status().Slots == 0 })
	if idle := p.Status().Idle; idle == "" {
		t.Error("a pool without slots says nothing about it")
	}
	send(1)
	eventually(t, "101 completed", func() bool { return p.Status().Completed == 101 })
}

// A pool in the background works only while no other pool is fully busy, at its own queue and
// at those that it is told.
func TestPoolInTheBackgroundWaitsForSpareCapacity(t *testing.T) {
	b := newBench(t)
	b.send("tasks", body("by day", ""))
	b.send("other", body("by night", ""))
	release := make(chan struct{})
	day := &worker.Pool{Client: b.client, Name: "day", Source: "tasks", Handler: worker.HandlerFunc(func(ctx context.Context, _ *worker.Task) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})}
	run(t, day)
	eventually(t, "the broker knows that day is busy", func() bool {
		orders, err := b.client.AnnouncePool(t.Context(), client.PoolReport{Name: "probe", Instance: "1", Sources: []string{"other"}, Beside: []string{"tasks"}})
		return err == nil && !orders.Spare
	})
	night := &worker.Pool{Client: b.client, Name: "night", Source: "other", WhenSpare: true, SpareBeside: []string{"tasks"},
		Handler: worker.HandlerFunc(func(context.Context, *worker.Task) error { return nil })}
	run(t, night)
	eventually(t, "night waits", func() bool { return night.Status().Idle == "no spare capacity" })
	if s := night.Status(); s.Completed != 0 || s.Idle == "" {
		t.Errorf("while day is busy, night is %+v", s)
	}
	close(release)
	eventually(t, "night works", func() bool { return night.Status().Completed == 1 })
}
