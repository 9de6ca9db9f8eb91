// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestDemand(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   DemandInput
		want int
		why  string
	}{
		{"nothing", DemandInput{}, 0, ""},
		{"only the floor", DemandInput{Floor: 2}, 2, "raised to the floor"},
		{"little's law", DemandInput{Headroom: -1, Classes: []Load{{Arrival: 10, Service: 2 * time.Second}}}, 20, "20 busy"},
		{"headroom", DemandInput{Classes: []Load{{Arrival: 10, Service: 2 * time.Second}}}, 25, "5 spare"},
		{"backlog", DemandInput{Classes: []Load{{Waiting: 100, Service: time.Second, Wait: 10 * time.Second}}}, 10, "10 for the backlog"},
		{"an old backlog", DemandInput{Classes: []Load{{Waiting: 100, Service: time.Second, Wait: 10 * time.Second, Oldest: 5 * time.Second}}}, 20, ""},
		{"a late backlog", DemandInput{Classes: []Load{{Waiting: 100, Service: time.Second, Wait: 10 * time.Second, Oldest: time.Hour}}}, 100, ""},
		{"no objective", DemandInput{Classes: []Load{{Waiting: 600, Service: time.Second}}}, 2, ""},
		{"one deadline does not add to another", DemandInput{Classes: []Load{
			{Name: "soon", Waiting: 100, Service: time.Second, Wait: 10 * time.Second},
			{Name: "later", Waiting: 400, Service: time.Second, Wait: 100 * time.Second},
		}}, 10, "class soon is the most pressing"},
		{"a later deadline asks for more", DemandInput{Classes: []Load{
			{Name: "later", Waiting: 4000, Service: time.Second, Wait: 100 * time.Second},
			{Name: "soon", Waiting: 100, Service: time.Second, Wait: 10 * time.Second},
		}}, 41, "class later is the most pressing"},
		{"the example of the guide", DemandInput{Classes: []Load{
			{Name: "paying", Arrival: 10, Service: 2 * time.Second, Waiting: 300, Oldest: 4 * time.Second, Wait: 10 * time.Second},
		}}, 125, "20 busy with arrivals, 5 spare, 100 for the backlog (class paying is the most pressing)"},
		{"service not known", DemandInput{Classes: []Load{{Waiting: 5}}}, 1, "at least one"},
		{"ceiling", DemandInput{Ceiling: 8, Classes: []Load{{Arrival: 10, Service: 2 * time.Second}}}, 8, "limited by the ceiling"},
		{"at work", DemandInput{Running: 3}, 3, "this many are busy now"},
		{"the ceiling is above all", DemandInput{Running: 30, Floor: 20, Ceiling: 5}, 5, ""},
	} {
		got := Demand(tt.in)
		if got.Workers != tt.want || !strings.Contains(got.Why, tt.why) {
			t.Errorf("%s: %d workers (%s), want %d (%s)", tt.name, got.Workers, got.Why, tt.want, tt.why)
		}
	}
}

// TestDemandIsEnough simulates workers that serve what is due first, for the
// backlogs that Demand is asked about: all start in time.
func TestDemandIsEnough(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 4))
		var in DemandInput
		var due []time.Duration // of each message, the earliest first
		service := time.Duration(1+random.IntN(2000)) * time.Millisecond
		left := time.Duration(0)
		for range 1 + random.IntN(4) {
			left += service * time.Duration(1+random.IntN(50))
			n := 1 + random.IntN(500)
			in.Classes = append(in.Classes, Load{Waiting: int64(n), Service: service, Wait: left})
			for range n {
				due = append(due, left)
			}
		}
		free := make([]time.Duration, Demand(in).Workers) // when each worker is free
		for _, d := range due {
			next := 0
			for i := range free {
				if free[i] < free[next] {
					next = i
				}
			}
			if free[next] > d {
				t.Fatalf("seed %d: %d workers start a message at %v that is due at %v", seed, len(free), free[next], d)
			}
			free[next] += service
		}
	}
}

func TestDemandNeverFallsAsLoadGrows(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 5))
		load := Load{
			Arrival: random.Float64() * 100, Service: time.Duration(random.Int64N(int64(time.Minute))),
			Waiting: random.Int64N(1000), Wait: time.Duration(1 + random.Int64N(int64(time.Hour))),
		}
		before := Demand(DemandInput{Classes: []Load{load}}).Workers
		for _, grow := range []func(*Load){
			func(l *Load) { l.Arrival++ }, func(l *Load) { l.Service += time.Second },
			func(l *Load) { l.Waiting++ }, func(l *Load) { l.Oldest += time.Second }, func(l *Load) { l.Wait /= 2 },
		} {
			grow(&load)
			if now := Demand(DemandInput{Classes: []Load{load}}).Workers; now < before {
				t.Fatalf("seed %d: %d workers became %d at %+v", seed, before, now, load)
			}
			before = Demand(DemandInput{Classes: []Load{load}}).Workers
		}
	}
}

func TestLoadOfAReport(t *testing.T) {
	c := newClock(gold)
	for range 60 {
		c.Arrived(c.now, 1, 4)
		c.Settled(c.now, 1, c.now, c.now.Add(-500*time.Millisecond))
		c.Observe(1, Backlog{Waiting: 7, Oldest: c.now.Add(-time.Second)})
		c.second(0, 0)
	}
	l := c.Report(c.now).Classes[0].Load()
	if l.Name != "gold" || l.Arrival < 3.8 || l.Arrival > 4.2 || l.Service != 500*time.Millisecond || l.Waiting != 7 || l.Oldest != 2*time.Second || l.Wait != 10*time.Second {
		t.Errorf("load %+v", l)
	}
}
