// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

var noon = time.Unix(1_800_000_000, 0).UTC()

// clock plays a queue second by second.
type clock struct {
	*Meter
	now     time.Time
	changes []Change
}

func newClock(classes ...Class) *clock { return &clock{Meter: NewMeter(classes), now: noon} }

// second passes with n deliveries of class 1 that waited that long.
func (c *clock) second(n int, waited time.Duration) {
	c.now = c.now.Add(time.Second)
	for range n {
		c.Delivered(c.now, 1, c.now.Add(-waited))
	}
	c.changes = append(c.changes, c.Tick(c.now)...)
}

func (c *clock) run(seconds, n int, waited time.Duration) {
	for range seconds {
		c.second(n, waited)
	}
}

func (c *clock) state() State { return c.classes[1].state }

var gold = Class{Name: "gold", Wait: 10 * time.Second, Target: .95}

func TestStates(t *testing.T) {
	c := newClock(gold)
	c.run(3600, 10, time.Second)
	if c.state() != Met || len(c.changes) != 0 {
		t.Fatalf("after a good hour: %v, changes %+v", c.state(), c.changes)
	}
	c.run(10, 10, 20*time.Second)
	if c.state() != Met {
		t.Errorf("ten bad seconds of 300, which is 3 %%: %v", c.state())
	}
	c.run(10, 10, 20*time.Second)
	if c.state() != AtRisk {
		t.Errorf("twenty bad seconds of 300, which is 7 %%: %v", c.state())
	}
	c.run(400, 10, time.Second)
	if c.state() != Met {
		t.Errorf("after more than five good minutes: %v", c.state())
	}
	c.run(200, 10, 20*time.Second)
	if c.state() != Missed {
		t.Errorf("200 bad seconds of an hour, which is 5.6 %%: %v", c.state())
	}
	c.run(400, 10, time.Second)
	if c.state() != AtRisk {
		t.Errorf("good again, but not the hour: %v", c.state())
	}
	c.run(3600, 10, time.Second)
	if c.state() != Met {
		t.Errorf("after another good hour: %v", c.state())
	}
	var path []string
	for _, ch := range c.changes {
		if ch.Subject != OfObjective || ch.Name != "gold" || ch.Class != 1 || ch.Why == "" {
			t.Errorf("change %+v", ch)
		}
		path = append(path, ch.To.String())
	}
	if got := strings.Join(path, ", "); got != "at risk, met, at risk, missed, at risk, met" {
		t.Errorf("states went %s", got)
	}
	if want := "of the messages of the last 5m and 94.4 % of those of the last 1h started within 10s; the objective is 95 %"; !strings.Contains(c.changes[3].Why, "of the last 1h started within 10s; the objective is 95 %") {
		t.Errorf("why %q, want about %q", c.changes[3].Why, want)
	}
}

// TestStopIsNoticed has no consumer: without deliveries nothing is late
// but what waits.
func TestStopIsNoticed(t *testing.T) {
	c := newClock(gold)
	c.run(600, 10, time.Second)
	stopped := c.now
	for s := range 300 {
		c.Observe(1, Backlog{Waiting: int64(10 * (s + 1)), Oldest: stopped})
		c.second(0, 0)
	}
	if c.state() != Missed {
		t.Errorf("no delivery for five minutes: %v", c.state())
	}
	r := c.Report(c.now).Classes[0]
	if r.Objective.Overdue < 2800 || r.Objective.Overdue > 3000 {
		t.Errorf("%v are overdue of 3000 that arrived evenly, 2900 is right", r.Objective.Overdue)
	}
	fresh := newClock(gold)
	fresh.Observe(1, Backlog{Waiting: 1, Oldest: noon})
	fresh.run(9, 0, 0)
	if fresh.state() != Met {
		t.Errorf("one message waits for nine seconds: %v", fresh.state())
	}
	fresh.run(3, 0, 0)
	if fresh.state() != Missed {
		t.Errorf("the only message there is waits for twelve seconds: %v", fresh.state())
	}
	fresh.Observe(1, Backlog{})
	fresh.second(0, 0)
	if fresh.state() != Met {
		t.Errorf("without a backlog: %v", fresh.state())
	}
}

func TestLongObjectivesHaveLongWindows(t *testing.T) {
	c := newClock(Class{Name: "report", Wait: 10 * time.Minute, Target: .9})
	c.second(1, 0)
	o := c.Report(c.now).Classes[0].Objective
	if o.Short.Window != 50*60 || o.Long.Window != 600*60 {
		t.Errorf("windows of %v and %v seconds, want 50 minutes and 10 hours", o.Short.Window, o.Long.Window)
	}
}

// TestUndeliveredCountsAsLate is for B8: what left without having been
// delivered was not delivered in time.
func TestUndeliveredCountsAsLate(t *testing.T) {
	c := newClock(gold, Class{Name: "rest"})
	c.Expired(c.now, 1) // after a delivery
	c.second(1, 0)
	if c.state() != Met {
		t.Errorf("expired after a delivery in time: %v", c.state())
	}
	c.Expired(c.now, 1)
	c.Undelivered(c.now, 1)
	c.Undelivered(c.now, 2) // has no objective
	c.second(0, 0)
	if c.state() != Missed {
		t.Errorf("expired without a delivery: %v", c.state())
	}
	if r := c.Report(c.now).Classes[0]; r.Expired.Total != 2 || r.DeadLettered.Total != 0 {
		t.Errorf("%d expired and %d died, want 2 and none", r.Expired.Total, r.DeadLettered.Total)
	}
}

// TestSnapshotOfVersion1 reads what an earlier version wrote, which did not count
// what expired.
func TestSnapshotOfVersion1(t *testing.T) {
	old, err := os.ReadFile("testdata/snapshot-1")
	if err != nil {
		t.Fatal(err)
	}
	m := NewMeter([]Class{gold, {Name: "rest"}})
	if err := m.Restore(old); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 5, 4, 10, 1, 30, 0, time.UTC)
	for range 2 { // as it was, and as it is written now
		r := m.Report(at)
		gold, rest := r.Classes[0], r.Classes[1]
		if gold.Arrived.Total != 270 || gold.Completed.Total != 90 || gold.DeadLettered.Total != 9 || gold.Wait.Total != 90 ||
			gold.Objective.State != Missed || math.Abs(gold.Objective.Long.Share-.909) > .001 {
			t.Errorf("gold: %+v, %+v", gold, gold.Objective)
		}
		if rest.DeadLettered.Total != 90 || rest.Refused.Total != 180 || rest.Evicted.Total != 360 || rest.Expired.Total != 0 {
			t.Errorf("rest: %+v", rest)
		}
		again := NewMeter([]Class{{Name: "gold", Wait: 10 * time.Second, Target: .95}, {Name: "rest"}})
		if err := again.Restore(m.Snapshot()); err != nil {
			t.Fatal(err)
		}
		m = again
	}
	for n := range old {
		if err := m.Restore(old[:n]); !errors.Is(err, errSnapshot) {
			t.Fatalf("the first %d bytes: %v, want %v", n, err, errSnapshot)
		}
	}
}

func TestExpectedRate(t *testing.T) {
	c := newClock(Class{Name: "a", Expected: 10})
	work := func(seconds, n int, waiting int64) {
		for range seconds {
			for range n {
				c.Settled(c.now, 1, c.now, c.now)
			}
			c.Observe(1, Backlog{Waiting: waiting, Oldest: c.now})
			c.second(0, 0)
		}
	}
	work(120, 2, 0)
	if len(c.changes) != 0 {
		t.Fatalf("slow, but there is nothing to do: %+v", c.changes)
	}
	work(55, 2, 100)
	if len(c.changes) != 0 {
		t.Fatalf("slow for less than a minute: %+v", c.changes)
	}
	work(10, 2, 100)
	if len(c.changes) != 1 || c.changes[0].To != Missed || c.changes[0].Subject != OfRate {
		t.Fatalf("slow for a minute: %+v", c.changes)
	}
	work(300, 10, 100)
	if len(c.changes) != 2 || c.changes[1].To != Met {
		t.Errorf("as fast as expected: %+v", c.changes)
	}
}

func TestReport(t *testing.T) {
	c := newClock(gold, Class{Name: "rest"})
	for range 120 {
		for range 10 {
			c.Arrived(c.now, 1, 2)
			c.Delivered(c.now, 1, c.now.Add(-2*time.Second))
			c.Settled(c.now, 1, c.now.Add(-3*time.Second), c.now.Add(-time.Second))
		}
		c.Refused(c.now, 2, 1)
		c.Evicted(c.now, 2, 3)
		c.DeadLettered(c.now, 7) // an unknown class
		c.Count(c.now, Receive, 10)
		c.Count(c.now, EmptyWait, 5)
		c.Observe(1, Backlog{Waiting: 500, Oldest: c.now.Add(-4 * time.Second)})
		c.second(0, 0)
	}
	r := c.Report(c.now)
	if len(r.Classes) != 3 || r.Classes[0].Name != "" || r.Classes[0].DeadLettered.Total != 120 {
		t.Fatalf("classes %+v", r.Classes)
	}
	g, rest := r.Classes[1], r.Classes[2]
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > .04*want+1e-9 {
			t.Errorf("%s is %v, want about %v", what, got, want)
		}
	}
	near("p95 of wait", g.Wait.P95, 2)
	near("mean of service", g.Service.Mean, 1)
	near("p50 end to end", g.EndToEnd.P50, 3)
	near("arrivals", g.Arrived.Minute, 20)
	near("completions", g.Completed.Minute, 10)
	near("oldest", g.OldestAge, 5)
	near("operations per message", r.PerMessage, 1.5)
	near("share", g.Objective.Short.Share, 1)
	if g.DrainSeconds != nil || rest.DrainSeconds == nil || *rest.DrainSeconds != 0 {
		t.Errorf("drain %v and %v, want never and at once", g.DrainSeconds, rest.DrainSeconds)
	}
	if d := drain(100, 4); *d != 25 {
		t.Errorf("100 at 4 per second are completed in %v s", *d)
	}
	if rest.Refused.Total != 120 || rest.Evicted.Total != 360 || rest.Objective != nil {
		t.Errorf("rest %+v", rest)
	}
	if g.Wait.Buckets[10] != 1200 || g.Wait.Buckets[9] != 0 || g.Wait.Total != 1200 { // 2.5 s and 1 s
		t.Errorf("buckets %v", g.Wait.Buckets)
	}
	text, err := json.Marshal(r)
	for _, want := range []string{`"state":"met"`, `"drainSeconds":null`, `"perSecond":{"1s":`, `"operation":"emptyWait","total":600`} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s, %v\ndoes not have %s", text, err, want)
		}
	}
}

// TestRotationKeepsTheTotals covers hours: recent measurements are
// recent, totals cover everything.
func TestRotationKeepsTheTotals(t *testing.T) {
	c := newClock(gold)
	c.run(3600, 1, 8*time.Second)
	c.run(3600, 1, time.Second)
	w := c.Report(c.now).Classes[0].Wait
	if w.Total != 7200 || w.Buckets[len(Bounds)-1] != 7200 || w.Count > 1800+60 || w.Max > 1.1 {
		t.Errorf("after an hour of 8 s and one of 1 s: %+v", w)
	}
}

func TestConfigureKeepsWhatWasMeasured(t *testing.T) {
	c := newClock(gold, Class{Name: "b"})
	c.run(10, 1, 20*time.Second)
	if c.state() != Missed {
		t.Fatal(c.state())
	}
	c.Configure([]Class{{Name: "new"}, gold})
	if got := c.classes[2]; got.state != Missed || got.wait.current.Count() != 10 || got.number != 2 {
		t.Errorf("gold as the second class: %v, %d waits, number %d", got.state, got.wait.current.Count(), got.number)
	}
	c.Configure([]Class{{Name: "gold", Wait: time.Minute, Target: .9}})
	if got := c.classes[1]; got.state != Met || got.wait.current.Count() != 10 {
		t.Errorf("gold with another objective: %v, %d waits", got.state, got.wait.current.Count())
	}
	c.Configure([]Class{{Name: "gold"}})
	if got := c.Tick(c.now); len(got) != 0 || c.state() != NoObjective {
		t.Errorf("gold without an objective: %v, changes %+v", c.state(), got)
	}
}

func TestSnapshot(t *testing.T) {
	c := newClock(gold, Class{Name: "b", Expected: 4})
	c.Arrived(c.now, 2, 5)
	c.Refused(c.now, 0, 2)
	c.Count(c.now, Peek, 9)
	c.run(2000, 3, 20*time.Second)
	snapshot := c.Snapshot()

	back := NewMeter([]Class{gold, {Name: "b", Expected: 4}})
	if err := back.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	if got, want := back.Report(c.now), c.Report(c.now); !reflect.DeepEqual(got, want) {
		t.Errorf("restored %+v\nwant     %+v", got, want)
	}
	if got := back.Tick(c.now); len(got) != 0 {
		t.Errorf("a restart changes states: %+v", got)
	}

	other := NewMeter([]Class{{Name: "b"}, {Name: "c"}})
	if err := other.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	if r := other.Report(c.now); r.Classes[1].Name != "b" || r.Classes[1].Arrived.Total != 5 || r.Classes[1].Class != 1 {
		t.Errorf("by name: %+v", r.Classes)
	}

	for n := range snapshot {
		if err := back.Restore(snapshot[:n]); !errors.Is(err, errSnapshot) {
			t.Fatalf("the first %d bytes: %v, want %v", n, err, errSnapshot)
		}
	}
	if err := back.Restore(append(snapshot, 0)); !errors.Is(err, errSnapshot) {
		t.Errorf("with a byte too many: %v", err)
	}
	if got, want := back.Report(c.now), c.Report(c.now); !reflect.DeepEqual(got, want) {
		t.Error("a damaged snapshot has changed the meter")
	}
}

func FuzzRestore(f *testing.F) {
	c := newClock(gold)
	c.run(3, 2, time.Second)
	f.Add(c.Snapshot())
	if old, err := os.ReadFile("testdata/snapshot-1"); err == nil {
		f.Add(old)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := NewMeter([]Class{gold})
		if m.Restore(raw) != nil {
			return
		}
		m.Tick(noon)
		m.Report(noon)
		again := NewMeter([]Class{gold})
		if err := again.Restore(m.Snapshot()); err != nil {
			t.Fatalf("what was restored cannot be restored again: %v", err)
		}
	})
}

func TestStateText(t *testing.T) {
	for s := NoObjective; s <= Missed; s++ {
		text, _ := s.MarshalText()
		var back State
		if err := back.UnmarshalText(text); err != nil || back != s {
			t.Errorf("%v is read back as %v, %v", s, back, err)
		}
	}
	if new(State).UnmarshalText([]byte("fine")) == nil {
		t.Error("fine is a state")
	}
}

func TestCountingDoesNotAllocate(t *testing.T) {
	c := newClock(gold)
	c.second(1, 0)
	if got := testing.AllocsPerRun(1000, func() {
		c.now = c.now.Add(time.Second)
		c.Arrived(c.now, 1, 1)
		c.Delivered(c.now, 1, noon)
		c.Settled(c.now, 1, noon, noon)
		c.Count(c.now, Receive, 1)
	}); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func BenchmarkMeter(b *testing.B) {
	for _, bb := range []struct {
		name  string
		event func(m *Meter, now time.Time)
	}{
		{"arrived", func(m *Meter, now time.Time) { m.Arrived(now, 1, 1) }},
		{"delivered", func(m *Meter, now time.Time) { m.Delivered(now, 1, noon) }},
		{"settled", func(m *Meter, now time.Time) { m.Settled(now, 1, noon, noon) }},
		{"operation", func(m *Meter, now time.Time) { m.Count(now, Send, 1) }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			m, now := NewMeter([]Class{gold}), noon
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(10 * time.Microsecond) // 100,000 a second
				bb.event(m, now)
			}
		})
	}
}
