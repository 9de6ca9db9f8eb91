// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"testing"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/client/admin"
	"github.com/triagemq/triagemq/triagetest"
)

// A broker that has restarted learns the orders of a pool from the pool.
func TestAnnouncedOrdersOutliveTheBroker(t *testing.T) {
	b := triagetest.Start(t, "queues: [{name: orders}, {name: reports}]")
	c := b.Client()
	report := client.PoolReport{Name: "low", Instance: "1", Sources: []string{"orders", "reports"}, Slots: 4}
	orders, err := c.AnnouncePool(t.Context(), report)
	if err != nil {
		t.Fatal(err)
	}
	if !orders.Known || !orders.Spare || orders.Instances != 1 || orders.Revision != 0 || orders.Waiting != 0 {
		t.Errorf("orders of a new pool: %+v", orders)
	}
	a, err := admin.New(b.ConnectionString(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.PausePool(t.Context(), "low"), a.ResizePool(t.Context(), "low", 3)); err != nil {
		t.Fatal(err)
	}
	given, err := c.AnnouncePool(t.Context(), report)
	if err != nil || !given.Paused || given.Slots != 3 || given.Seal == "" {
		t.Fatalf("orders %+v, %v", given, err)
	}
	report.Obeyed = given
	b.Crash()
	for _, obeyed := range []client.PoolOrders{given, {}} {
		report.Obeyed = obeyed
		orders, err = c.AnnouncePool(t.Context(), report)
		if err != nil || !orders.Paused || orders.Slots != 3 || orders.Revision != given.Revision {
			t.Errorf("after the crash: %+v, %v, want the orders that the pool had", orders, err)
		}
	}
}

// A broker learns no orders that it has not given: a report needs no more than Listen.
func TestAnnouncedOrdersThatAreMadeUp(t *testing.T) {
	b := triagetest.Start(t, "queues: [{name: orders}]")
	orders, err := b.Client().AnnouncePool(t.Context(), client.PoolReport{
		Name: "low", Instance: "1", Sources: []string{"orders"}, Obeyed: client.PoolOrders{Paused: true, Slots: 3, Revision: 17, Seal: "made up"},
	})
	if err != nil || orders.Paused || orders.Slots != 0 || orders.Revision != 0 {
		t.Errorf("orders %+v, %v", orders, err)
	}
}

func TestAnnouncingErrors(t *testing.T) {
	b := triagetest.Start(t, "queues: [{name: orders}]")
	c := b.Client()
	if _, err := c.AnnouncePool(t.Context(), client.PoolReport{Name: "a\nb", Instance: "1", Sources: []string{"orders"}}); !errors.Is(err, client.ErrInvalid) {
		t.Errorf("odd name: %v, want %v", err, client.ErrInvalid)
	}
	if _, err := c.AnnouncePool(t.Context(), client.PoolReport{Name: "low", Instance: "1", Sources: []string{"none"}}); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("no such queue: %v, want %v", err, client.ErrNotFound)
	}
}

// A pool can take from subscriptions, too.
func TestPoolsAtSubscriptions(t *testing.T) {
	b := triagetest.Start(t, "topics: [{name: jobs, subscriptions: [{name: high}, {name: low}]}]")
	c := b.Client()
	s, err := c.OpenSender(t.Context(), "jobs", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), &client.Message{Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	orders, err := c.AnnouncePool(t.Context(), client.PoolReport{
		Name: "all", Instance: "1", Slots: 1, Sources: []string{client.Subscription("jobs", "high"), client.Subscription("jobs", "low")},
	})
	if err != nil || !orders.Known || orders.Waiting != 2 || orders.Demand != 2 || orders.Oldest < 0 {
		t.Errorf("orders %+v, %v, want what waits in both", orders, err)
	}
}

// Messages that a pool keeps for a retry are locked, but need no slots.
func TestDemandLeavesOutRetries(t *testing.T) {
	b := triagetest.Start(t, "queues: [{name: orders}]")
	c := b.Client()
	s, err := c.OpenSender(t.Context(), "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := s.Send(t.Context(), &client.Message{}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := c.OpenReceiver(t.Context(), "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	for locked := 0; locked < 5; {
		ms, err := r.Receive(t.Context(), 5-locked)
		if err != nil {
			t.Fatal(err)
		}
		locked += len(ms)
	}
	for retrying, want := range map[int]int{0: 5, 3: 2, 9: 0} {
		report := client.PoolReport{Name: "low", Instance: "1", Sources: []string{"orders"}, Slots: 5, Retrying: retrying}
		if orders, err := c.AnnouncePool(t.Context(), report); err != nil || orders.Demand != want {
			t.Errorf("%d of 5 are kept: demand %d, %v, want %d", retrying, orders.Demand, err, want)
		}
	}
}
