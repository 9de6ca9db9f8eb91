// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// machine has clocks that a test moves.
type machine struct {
	wall    time.Time
	elapsed time.Duration
}

func (m *machine) read() Reading { return Reading{m.wall, m.elapsed} }

// pass lets time go by, as both clocks see it.
func (m *machine) pass(d time.Duration) {
	m.wall = m.wall.Add(d)
	m.elapsed += d
}

// set sets the wall clock, forward or back.
func (m *machine) set(by time.Duration) { m.wall = m.wall.Add(by) }

// run lets time pass and reads the clock every second.
func (m *machine) run(c *Clock, d time.Duration) time.Time {
	for ; d > 0; d -= time.Second {
		m.pass(min(d, time.Second))
		c.Now()
	}
	return c.Now()
}

func TestUndisturbedClockIsTheWallClock(t *testing.T) {
	m := &machine{wall: noon}
	c := New(m.read)
	for range 1000 {
		m.pass(time.Duration(rand.IntN(5000)) * time.Millisecond)
		if got := c.Now(); !got.Equal(m.wall) {
			t.Fatalf("at %v the clock says %v", m.wall, got)
		}
	}
}

// A wall clock that is set back does not stop time.
func TestWallClockSetBack(t *testing.T) {
	m := &machine{wall: noon}
	c := New(m.read)
	m.set(-time.Hour)
	if got := m.run(c, 33*time.Second+time.Second/3).Sub(noon); got < 30*time.Second || got > 31*time.Second {
		t.Errorf("a lock of 30s has lasted %v after 33.3s", got)
	}
	m.run(c, 5*time.Hour)
	if off := c.State().Off; off > -29*time.Minute || off < -31*time.Minute {
		t.Errorf("after five hours the wall clock is off by %v, want half an hour", off)
	}
	m.run(c, 5*time.Hour)
	if got := c.Now(); !got.Equal(m.wall) {
		t.Errorf("after ten hours it is %v, and %v for us", m.wall, got)
	}
}

// A machine that slept, or whose clock was hours behind when it booted: what is
// due by the wall clock is due.
func TestWallClockSetForward(t *testing.T) {
	m := &machine{wall: noon}
	c := New(m.read)
	m.set(8 * time.Hour)
	if got := m.run(c, 5*time.Second).Sub(noon); got > 6*time.Second {
		t.Errorf("after five seconds %v have passed: it may be a mistake", got)
	}
	m.run(c, 6*time.Second)
	if got := c.Now(); !got.Equal(m.wall) {
		t.Errorf("after eleven seconds it is %v, and %v for us", m.wall, got)
	}
	if by := c.State().Stepped; by > 8*time.Hour || by < 8*time.Hour-2*time.Second {
		t.Errorf("stepped by %v, want the eight hours but for what was slewed", by)
	}
}

func TestWallClockIsWrongForAMoment(t *testing.T) {
	m := &machine{wall: noon}
	c := New(m.read)
	for range 20 {
		m.set(365 * 24 * time.Hour)
		m.run(c, 9*time.Second)
		m.set(-365 * 24 * time.Hour)
		m.run(c, 9*time.Second)
	}
	if off := m.wall.Sub(c.Now()).Abs(); off > time.Second {
		t.Errorf("a clock that was wrong now and then leaves us off by %v", off)
	}
}

func TestSmallStepsAreNotTakenOver(t *testing.T) {
	m := &machine{wall: noon}
	c := New(m.read)
	m.set(900 * time.Millisecond)
	before := c.Now()
	for range 20 {
		m.pass(time.Second)
		now := c.Now()
		if d := now.Sub(before); d > 1100*time.Millisecond {
			t.Fatalf("%v in a second", d)
		}
		before = now
	}
	if st := c.State(); st != (State{}) || !before.Equal(m.wall) {
		t.Errorf("state %+v, at %v of %v, want to have caught up", st, before, m.wall)
	}
}

// However the wall clock is set: time never goes back, runs at least at nine
// tenths of its speed, and agrees with the wall clock when that is left alone.
func TestSteadyUnderRandomChanges(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		m := &machine{wall: noon}
		s := newSteady(m.read())
		last := s.At(m.read())
		for range 200 {
			if rng.IntN(4) == 0 {
				m.set(time.Duration(rng.Int64N(int64(4*time.Hour))) - 2*time.Hour)
			}
			d := time.Duration(rng.Int64N(int64(20 * time.Second)))
			m.pass(d)
			now := s.At(m.read())
			if got := now.Sub(last); got < d-d/slew {
				t.Fatalf("seed %d: %v have passed and %v for us", seed, d, got)
			}
			if got := s.At(m.read()); !got.Equal(now) {
				t.Fatalf("seed %d: two times in one moment, %v and %v", seed, now, got)
			}
			last = now
		}
		behind := max(last.Sub(m.wall), 0)
		for range 100 {
			m.pass(behind/10 + time.Second)
			last = s.At(m.read())
		}
		if !last.Equal(m.wall) {
			t.Fatalf("seed %d: the wall clock was left alone for ten times %v and is still off by %v", seed, behind, m.wall.Sub(last))
		}
	}
}

// Readings of two goroutines may come the wrong way round.
func TestOldReadingIsNoTimeTravel(t *testing.T) {
	m := &machine{wall: noon}
	s := newSteady(m.read())
	old := m.read()
	m.pass(time.Minute)
	now := s.At(m.read())
	if got := s.At(old); got.Before(now) {
		t.Errorf("an old reading turned %v into %v", now, got)
	}
	m.pass(time.Minute)
	if got := s.At(m.read()); !got.Equal(m.wall) {
		t.Errorf("after an old reading: %v, want %v", got, m.wall)
	}
}

// A restarted process continues from the times it has stored,
// although the wall clock was set back meanwhile.
func TestClockBeginsWithWhatWasStored(t *testing.T) {
	m := &machine{wall: noon}
	c := New(m.read)
	stored := noon.Add(2 * time.Hour)
	if !c.AtLeast(stored) {
		t.Fatal("two hours ahead was refused")
	}
	if got := c.Now(); !got.Equal(stored) {
		t.Errorf("begins at %v, want %v", got, stored)
	}
	m.run(c, 20*time.Hour)
	if got := c.Now(); !got.Equal(m.wall) {
		t.Errorf("after twenty hours: %v, want %v", got, m.wall)
	}
	if !c.AtLeast(noon) || !c.Now().Equal(m.wall) {
		t.Error("what was stored long ago changed the time")
	}
	if c.AtLeast(m.wall.Add(10 * 365 * 24 * time.Hour)) {
		t.Error("a store from the far future was followed")
	}
	if got := c.Now(); !got.Equal(m.wall) {
		t.Errorf("and made it %v, want %v", got, m.wall)
	}
	if st := c.State(); st.Refused != 10*365*24*time.Hour {
		t.Errorf("state %+v, want to hear of the ten years", st)
	}
}

func TestUntil(t *testing.T) {
	m := &machine{wall: noon}
	c := New(m.read)
	until := func(d time.Duration, want time.Duration) {
		t.Helper()
		if got := c.Until(c.Now().Add(d)); got != want {
			t.Errorf("for a moment in %v: wait %v, want %v", d, got, want)
		}
	}
	until(time.Second, time.Second)
	until(-time.Second, 0)
	until(time.Hour, lookAgain)
	m.set(time.Hour)
	until(time.Second, 900*time.Millisecond)
	m.set(-2 * time.Hour)
	until(time.Second, time.Second)
}

// In a bubble of synctest, and on any machine, the system's clocks are read.
func TestSystemClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(nil)
		began := c.Now()
		if !began.Equal(time.Now()) {
			t.Errorf("begins at %v, want %v", began, time.Now())
		}
		time.Sleep(time.Hour)
		if got := c.Now().Sub(began); got != time.Hour {
			t.Errorf("an hour was %v", got)
		}
	})
}

func BenchmarkNow(b *testing.B) {
	c := New(nil)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Now()
		}
	})
}
