// SPDX-License-Identifier: Apache-2.0

package autoscale

import (
	"math/rand/v2"
	"testing"
	"time"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// follow feeds samples at half-second steps and returns the slots after each.
func follow(s *Scaler, now time.Time, samples ...Sample) []int {
	var out []int
	for _, in := range samples {
		now = now.Add(time.Second / 2)
		out = append(out, s.Decide(now, in))
	}
	return out
}

func repeat(n int, in Sample) []Sample {
	all := make([]Sample, n)
	for i := range all {
		all[i] = in
	}
	return all
}

func TestDemandIsFollowedUpAtOnceAndDownAfterTheCoolDown(t *testing.T) {
	s := New(Limits{Floor: 1, Ceiling: 10, CoolDown: 2 * time.Second}, 1)
	now := began
	steps := []struct {
		in   Sample
		want int
	}{
		{Sample{Measured: true, Demand: 4, Waiting: 9, Busy: 1}, 4},
		{Sample{Measured: true, Demand: 99, Waiting: 9, Busy: 4}, 10},
		{Sample{Measured: true, Demand: 2, Waiting: 9, Busy: 2}, 10}, // 0.5 s after the change
		{Sample{Measured: true, Demand: 3, Waiting: 9, Busy: 2}, 10},
		{Sample{Measured: true, Demand: 1, Waiting: 9, Busy: 2}, 10},
		{Sample{Measured: true, Demand: 1, Waiting: 9, Busy: 2}, 10}, // low for 1.5 s
		{Sample{Measured: true, Demand: 1, Waiting: 9, Busy: 2}, 3},  // the most since then
		{Sample{Measured: true, Demand: 5, Waiting: 9, Busy: 2}, 5},
	}
	for i, step := range steps {
		now = now.Add(time.Second / 2)
		if got := s.Decide(now, step.in); got != step.want {
			t.Errorf("step %d: %d slots, want %d", i, got, step.want)
		}
	}
}

func TestToZeroAndBack(t *testing.T) {
	s := New(Limits{Ceiling: 4, CoolDown: time.Second}, 2)
	// A rate of arrival that fades away asks for a slot without any message.
	idle := follow(s, began, repeat(4, Sample{Measured: true, Demand: 1})...)
	if got := idle[len(idle)-1]; got != 0 {
		t.Fatalf("idle: %v, want zero at the end", idle)
	}
	if got := s.Decide(began.Add(time.Hour), Sample{Measured: true, Demand: 1, Waiting: 1}); got != 1 {
		t.Errorf("a message waits: %d slots, want 1", got)
	}
}

func TestWithoutABrokerThatMeasures(t *testing.T) {
	s := New(Limits{Ceiling: 7, CoolDown: 2 * time.Second}, 0)
	if got := s.Decide(began, Sample{}); got != 1 {
		t.Fatalf("%d slots, want one, which asks for messages", got)
	}
	now := began
	var grown []int
	for range 12 { // every slot is filled at once
		now = now.Add(time.Second / 2)
		grown = append(grown, s.Decide(now, Sample{Busy: s.Slots()}))
	}
	if got := grown[len(grown)-1]; got != 7 {
		t.Errorf("always full: %v, want the ceiling at the end", grown)
	}
	for range 8 {
		now = now.Add(time.Second / 2)
		s.Decide(now, Sample{Busy: 3})
	}
	if got := s.Slots(); got != 4 {
		t.Errorf("three of them busy: %d slots, want 4", got)
	}
	for range 8 {
		now = now.Add(time.Second / 2)
		s.Decide(now, Sample{})
	}
	if got := s.Slots(); got != 1 {
		t.Errorf("idle: %d slots, want 1", got)
	}
}

// A slot that is tried and stays idle is not followed by more.
func TestTryingEndsWhenSlotsStayIdle(t *testing.T) {
	s := New(Limits{Floor: 2, Ceiling: 100, CoolDown: time.Minute}, 2)
	got := follow(s, began, repeat(20, Sample{Busy: 2})...)
	if last := got[len(got)-1]; last != 3 {
		t.Errorf("two tasks that last: %v, want 3 at the end", got)
	}
}

// Whatever happens: the limits are kept, and nothing shrinks within the cool-down of any
// change, or below what was needed meanwhile.
func TestLimitsAndCoolDownHold(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		l := Limits{Floor: rng.IntN(5), CoolDown: time.Duration(rng.IntN(20)) * time.Second / 2}
		l.Ceiling = max(1, l.Floor) + rng.IntN(20)
		s := New(l, rng.IntN(40)-10)
		now, changed, slots := began, began, s.Slots()
		type need struct {
			at   time.Time
			want int
		}
		var needs []need
		for range 400 {
			now = now.Add(time.Duration(rng.IntN(2000)) * time.Millisecond)
			in := Sample{Measured: rng.IntN(4) > 0, Demand: rng.IntN(30), Waiting: rng.IntN(3), Busy: rng.IntN(slots + 2)}
			if rng.IntN(3) == 0 {
				in.Demand, in.Busy, in.Waiting = 0, 0, 0
			}
			got := s.Decide(now, in)
			if got < l.Floor || got > l.Ceiling {
				t.Fatalf("seed %d: %d slots, want %d to %d", seed, got, l.Floor, l.Ceiling)
			}
			if in.Measured && in.Waiting > 0 && got < min(in.Demand, l.Ceiling) {
				t.Fatalf("seed %d: %d slots for a demand of %d", seed, got, in.Demand)
			}
			if in.Measured && (in.Waiting > 0 || in.Busy > 0) {
				needs = append(needs, need{now, l.clamp(in.Demand)})
			}
			if got < slots {
				if d := now.Sub(changed); d < l.CoolDown {
					t.Fatalf("seed %d: from %d to %d slots %v after a change, want at least %v", seed, slots, got, d, l.CoolDown)
				}
				for _, n := range needs {
					if now.Sub(n.at) < l.CoolDown && got < n.want {
						t.Fatalf("seed %d: %d slots, %v after %d were needed", seed, got, now.Sub(n.at), n.want)
					}
				}
			}
			if got != slots {
				changed, slots = now, got
			}
		}
	}
}
