// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/limits"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// bench is a registry with a clock.
type bench struct {
	t *testing.T
	Registry
	now time.Time
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, now: began}
	b.SetKey([]byte("the key"))
	return b
}

func (b *bench) announce(r Report) Answer {
	b.t.Helper()
	a, err := b.Announce(b.now, r)
	if err != nil {
		b.t.Fatalf("announce %+v: %v", r, err)
	}
	return a
}

func (b *bench) pause(name string, paused bool) {
	b.t.Helper()
	if _, err := b.Order(b.now, name, "", func(o *Orders) { o.Paused = paused }); err != nil {
		b.t.Fatal(err)
	}
}

// one is a report of an instance of the pool at q.
func one(name, instance string) Report {
	return Report{Name: name, Instance: instance, Sources: []string{"q"}, Host: "h", Slots: 4}
}

func TestInstancesOfAPoolAreSummedUp(t *testing.T) {
	b := newBench(t)
	r := one("low", "1")
	r.Busy, r.Suspended, r.Counts.Completed = 2, 1, 10
	b.announce(r)
	second := one("low", "2")
	second.Sources, second.Retrying = []string{"q", "r"}, 3
	if a := b.announce(second); a.Instances != 2 {
		t.Errorf("%d instances, want 2", a.Instances)
	}
	b.now = b.now.Add(time.Second)
	r.Counts = Counts{Completed: 14, Failed: 1}
	b.announce(r)
	b.announce(second)
	got := b.List(b.now)
	if len(got) != 1 {
		t.Fatalf("%d pools, want 1", len(got))
	}
	p := got[0]
	if p.Slots != 8 || p.Busy != 2 || p.Suspended != 1 || p.Retrying != 3 || p.Completed != 4 || p.Failed != 1 || p.PerSecond != 4 {
		t.Errorf("sums: %+v", p)
	}
	if !reflect.DeepEqual(p.Sources, []string{"q", "r"}) || len(p.Instances) != 2 || p.Instances[0].PerSecond != 4 {
		t.Errorf("pool: %+v", p)
	}
}

func TestSilentInstancesAreForgotten(t *testing.T) {
	b := newBench(t)
	b.announce(one("low", "1"))
	b.now = b.now.Add(silence)
	b.announce(one("low", "2"))
	if n := len(b.List(b.now)[0].Instances); n != 2 {
		t.Errorf("after %v: %d instances, want 2", silence, n)
	}
	b.now = b.now.Add(time.Millisecond)
	if a := b.announce(one("low", "2")); a.Instances != 1 {
		t.Errorf("%d instances, want the one that speaks", a.Instances)
	}
	b.now = b.now.Add(2 * silence)
	if got := b.List(b.now); len(got) != 0 {
		t.Errorf("listed: %+v, want none", got)
	}
}

func TestLeavingIsAtOnceAndCounted(t *testing.T) {
	b := newBench(t)
	b.announce(one("low", "1"))
	b.pause("low", true)
	last := one("low", "1")
	last.Leaving, last.Counts.Completed = true, 3
	b.announce(last)
	p := b.List(b.now)[0]
	if len(p.Instances) != 0 || p.Completed != 3 || !p.Paused {
		t.Errorf("after the last report: %+v", p)
	}
	unknown := one("other", "1")
	unknown.Leaving = true
	b.announce(unknown)
	if got := b.List(b.now); len(got) != 1 {
		t.Errorf("a pool that leaves before it came is listed: %+v", got)
	}
}

func TestOrdersReachAllInstancesAndOutliveThem(t *testing.T) {
	b := newBench(t)
	if a := b.announce(one("low", "1")); a.Orders != (Orders{}) {
		t.Errorf("orders of a new pool: %+v, want none", a.Orders)
	}
	b.announce(one("high", "1"))
	b.pause("low", true)
	first := b.announce(one("low", "1")).Orders
	if !first.Paused || first.Revision == 0 {
		t.Errorf("orders %+v, want a pause", first)
	}
	if a := b.announce(one("high", "1")); a.Orders.Paused {
		t.Error("another pool is paused too")
	}
	if _, err := b.Order(b.now, "low", "", func(o *Orders) { o.Slots = 7 }); err != nil {
		t.Fatal(err)
	}
	if a := b.announce(one("low", "2")); !a.Orders.Paused || a.Orders.Slots != 7 || a.Orders.Revision <= first.Revision {
		t.Errorf("orders of a new instance: %+v, want both", a.Orders)
	}
	b.now = b.now.Add(memory)
	if p := b.List(b.now)[0]; p.Name != "low" || !p.Paused || len(p.Instances) != 0 {
		t.Errorf("a day later: %+v, want the pause", p)
	}
	if a := b.announce(one("low", "3")); !a.Orders.Paused {
		t.Error("a pool that comes back is not paused any more")
	}
	b.now = b.now.Add(memory + silence)
	if got := b.List(b.now); len(got) != 0 {
		t.Errorf("orders are never forgotten: %+v", got)
	}
}

func TestOrdersNeedAPool(t *testing.T) {
	b := newBench(t)
	b.announce(one("low", "1"))
	for _, name := range []string{"", "lo", "LOW", "high"} {
		if _, err := b.Order(b.now, name, "", func(*Orders) {}); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v, want %v", name, err, ErrNotFound)
		}
	}
	if _, err := b.Order(b.now, "low", "elsewhere", func(*Orders) {}); !errors.Is(err, ErrNotFound) {
		t.Errorf("at another source: %v, want %v", err, ErrNotFound)
	}
	for _, slots := range []int{-1, limits.PoolSlots + 1} {
		_, err := b.Order(b.now, "low", "", func(o *Orders) { o.Slots = slots })
		if !errors.Is(err, ErrInvalid) && !errors.Is(err, limits.ErrExceeded) {
			t.Errorf("%d slots: %v, want an error", slots, err)
		}
	}
	if a := b.announce(one("low", "1")); a.Orders != (Orders{}) {
		t.Errorf("orders %+v, want none of those that were refused", a.Orders)
	}
}

// A broker that restarts learns the orders from the pools, the latest of them.
func TestOrdersAreLearnedAgain(t *testing.T) {
	before := newBench(t)
	before.announce(one("low", "1"))
	before.pause("low", true)
	old := before.announce(one("low", "1")).Orders
	before.now = before.now.Add(time.Second)
	before.pause("low", false)
	if _, err := before.Order(before.now, "low", "", func(o *Orders) { o.Paused, o.Slots = true, 2 }); err != nil {
		t.Fatal(err)
	}
	latest := before.announce(one("low", "1")).Orders

	b := newBench(t)
	b.now = before.now.Add(time.Minute)
	late, current := one("low", "late"), one("low", "current")
	late.Orders, current.Orders = old, latest
	b.announce(late)
	if a := b.announce(current); a.Orders != latest {
		t.Errorf("learned %+v, want %+v", a.Orders, latest)
	}
	if a := b.announce(late); a.Orders != latest {
		t.Errorf("the one that was late is told %+v, want %+v", a.Orders, latest)
	}

	// What is ordered now wins over all that is told.
	b.pause("low", false)
	b.now = b.now.Add(time.Second)
	current.Orders.Revision = math.MaxInt64
	current.Orders.Seal = b.seal(key{"low", "q"}, current.Orders)
	if a := b.announce(current); a.Orders.Paused {
		t.Error("a report overrules an order")
	}
}

// Who may listen to a queue cannot make up orders for the pools that take from it.
func TestOrdersThatTheBrokerHasNotGiven(t *testing.T) {
	given := newBench(t)
	given.announce(one("low", "1"))
	given.pause("low", true)
	real := given.announce(one("low", "1")).Orders
	other := newBench(t)
	other.SetKey([]byte("another key"))
	changed := func(f func(*Orders)) Orders {
		o := real
		f(&o)
		return o
	}
	for what, o := range map[string]Orders{
		"made up":         {Paused: true, Revision: 1},
		"another number":  changed(func(o *Orders) { o.Slots = 1 }),
		"a later one":     changed(func(o *Orders) { o.Revision++ }),
		"no pause":        changed(func(o *Orders) { o.Paused = false }),
		"without a seal":  changed(func(o *Orders) { o.Seal = "" }),
		"another broker":  changed(func(o *Orders) { o.Seal = other.seal(key{"low", "q"}, *o) }),
		"of another pool": changed(func(o *Orders) { o.Seal = given.seal(key{"high", "q"}, *o) }),
		"at another one":  changed(func(o *Orders) { o.Seal = given.seal(key{"low", "r"}, *o) }),
	} {
		b := newBench(t)
		r := one("low", "1")
		r.Orders = o
		if a := b.announce(r); a.Orders != (Orders{}) {
			t.Errorf("%s: the orders %+v are learned", what, a.Orders)
		}
	}
	b := newBench(t)
	r := one("low", "1")
	r.Orders = real
	b.now = b.now.Add(time.Hour)
	if a := b.announce(r); a.Orders != real {
		t.Errorf("learned %+v, want %+v", a.Orders, real)
	}
}

// Revisions that are ahead of the clock, after it was set back or by malice, do not stop
// later orders.
func TestRevisionsFromTheFuture(t *testing.T) {
	b := newBench(t)
	r := one("low", "1")
	r.Orders = Orders{Paused: true, Revision: math.MaxInt64}
	r.Orders.Seal = b.seal(key{"low", "q"}, r.Orders)
	told := b.announce(r).Orders
	if !told.Paused || told.Revision != b.now.UnixMilli() {
		t.Errorf("learned %+v, want the pause as of now", told)
	}
	b.pause("low", false)
	if a := b.announce(r); a.Orders.Paused || a.Orders.Revision <= told.Revision {
		t.Errorf("orders %+v, want the later one", a.Orders)
	}
}

// One that may listen to another queue cannot speak for pools of this one.
func TestOrdersAreOfOneSource(t *testing.T) {
	b := newBench(t)
	b.announce(one("low", "1"))
	enemy := one("low", "1")
	enemy.Sources, enemy.Orders = []string{"theirs", "q"}, Orders{Paused: true, Slots: 1, Revision: 1}
	enemy.Orders.Seal = b.seal(key{"low", "theirs"}, enemy.Orders) // given in another life
	b.announce(enemy)
	if a := b.announce(one("low", "1")); a.Orders != (Orders{}) || a.Instances != 1 {
		t.Errorf("a pool at another source gave %+v", a)
	}
	got, err := b.Order(b.now, "low", "q", func(o *Orders) { o.Slots = 9 })
	if err != nil || len(got) != 1 || got[0].Source != "q" {
		t.Errorf("order for one source: %+v, %v", got, err)
	}
	if a := b.announce(enemy); a.Orders.Slots != 1 {
		t.Errorf("the other source has orders %+v", a.Orders)
	}
	if got, err := b.Order(b.now, "low", "", func(o *Orders) { o.Slots = 3 }); err != nil || len(got) != 2 {
		t.Errorf("order for the name: %+v, %v, want both pools", got, err)
	}
}

func TestSpareIsWhenNoOtherPoolIsFull(t *testing.T) {
	b := newBench(t)
	spare := func(r Report) bool { return b.announce(r).Spare }
	busy, background := one("busy", "1"), one("night", "1")
	background.Background = true
	if !spare(busy) || !spare(background) {
		t.Error("nothing to spare among idle pools")
	}
	busy.Busy = 4
	if !spare(busy) {
		t.Error("a pool that is full counts against itself")
	}
	if spare(background) {
		t.Error("something to spare beside a pool that is full")
	}
	background.Busy = 4
	b.announce(background)
	other := one("other", "1")
	other.Background = true
	busy.Busy = 3
	b.announce(busy)
	if !spare(other) {
		t.Error("pools in the background keep each other from working")
	}
	busy.Busy = 4
	b.announce(busy)
	b.now = b.now.Add(silence + time.Millisecond)
	if !spare(background) {
		t.Error("a pool that is gone counts as full")
	}
}

// A report that is made up keeps nobody idle whose messages its sender could not take.
func TestSpareAmongTenants(t *testing.T) {
	b := newBench(t)
	at := func(name, source string, busy int) Report {
		r := one(name, "1")
		r.Sources, r.Busy = []string{source}, busy
		return r
	}
	night := at("night", "mine", 0)
	night.Background = true
	spare := func() bool { return b.announce(night).Spare }
	b.announce(at("enemy", "theirs", 4))
	if !spare() {
		t.Error("a full pool counts whose sender has no right to the queue")
	}
	night.Beside = []string{"theirs"}
	if spare() {
		t.Error("a full pool does not count that it was told to leave the machine")
	}
	night.Beside = nil
	b.announce(at("day", "mine", 4))
	if spare() {
		t.Error("a full pool at the same queue does not count")
	}
	b.announce(at("day", "mine", 3))
	if !spare() {
		t.Error("a pool counts that is not full")
	}
	liar := at("liar", "theirs", 1000)
	liar.Slots = 1
	second := at("liar", "theirs", 0)
	second.Instance = "2"
	b.announce(second)
	b.announce(liar)
	night.Beside = []string{"theirs"}
	b.announce(at("enemy", "theirs", 0))
	if !spare() {
		t.Error("one process makes up for the slots of another that are free")
	}
}

func TestOddReportsAreRefused(t *testing.T) {
	b := newBench(t)
	change := map[string]func(*Report){
		"no name":                func(r *Report) { r.Name = "" },
		"a dot":                  func(r *Report) { r.Name = "." },
		"two dots":               func(r *Report) { r.Name = ".." },
		"only a slash":           func(r *Report) { r.Name = "/" },
		"a slash after it":       func(r *Report) { r.Name = "low/" },
		"spaces around":          func(r *Report) { r.Name = " low" },
		"a control character":    func(r *Report) { r.Name = "low\x1b[2J" },
		"a line break":           func(r *Report) { r.Name = "low\n" },
		"text from right":        func(r *Report) { r.Name = "low\u202e" },
		"not UTF-8":              func(r *Report) { r.Name = "low\xff" },
		"long":                   func(r *Report) { r.Name = strings.Repeat("x", limits.PoolText+1) },
		"very long":              func(r *Report) { r.Host = strings.Repeat("ß", 1<<20) },
		"no instance":            func(r *Report) { r.Instance = "" },
		"odd host":               func(r *Report) { r.Host = "\x00" },
		"odd reason":             func(r *Report) { r.Idle = "a\tb" },
		"no source":              func(r *Report) { r.Sources = nil },
		"odd source":             func(r *Report) { r.Sources = []string{"q", "\xff"} },
		"too many sources":       func(r *Report) { r.Sources = make([]string, limits.PoolSources+1) },
		"a long seal":            func(r *Report) { r.Orders.Seal = strings.Repeat("x", sealText+1) },
		"odd neighbour":          func(r *Report) { r.Beside = []string{"\xff"} },
		"too many neighbours":    func(r *Report) { r.Beside = make([]string, limits.PoolSources+1) },
		"negative orders":        func(r *Report) { r.Orders.Slots = -1 },
		"more slots than may be": func(r *Report) { r.Orders.Slots = limits.PoolSlots + 1 },
	}
	for what, f := range change {
		r := one("low", "1")
		f(&r)
		if _, err := b.Announce(b.now, r); !errors.Is(err, ErrInvalid) && !errors.Is(err, limits.ErrExceeded) {
			t.Errorf("%s: %v, want an error", what, err)
		}
	}
	for _, name := range []string{"low", "orders/eu", "a/../b", "Größe 1", "%2F", "a?b#c", `"`, "topic/subscriptions/all", "日本", "..."} {
		b.announce(one(name, "1"))
	}
}

// Whatever is announced, what is kept has an end.
func TestPoolsAreBounded(t *testing.T) {
	b := newBench(t)
	refused := func(r Report) bool {
		_, err := b.Announce(b.now, r)
		if err != nil && !errors.Is(err, ErrTooMany) {
			t.Fatal(err)
		}
		return err != nil
	}
	at := func(source string, i int) Report {
		r := one(fmt.Sprint("pool ", i), "1")
		r.Sources = []string{source}
		return r
	}
	const share = limits.Pools / shareOfOwner
	for i := range share {
		if refused(at("q", i)) {
			t.Fatalf("pool %d is refused", i)
		}
	}
	if !refused(at("q", share)) {
		t.Error("one source may have any number of pools")
	}
	part := at("q/$deadletterqueue", share)
	part.Owner = "q"
	if !refused(part) {
		t.Error("the parts of one queue may have any number")
	}
	if refused(at("r", 0)) {
		t.Error("another source may have none")
	}
	for source := range 2 * shareOfOwner {
		for i := range share {
			refused(at(fmt.Sprint("s", source), i))
		}
	}
	if n := len(b.List(b.now)); n != limits.Pools {
		t.Errorf("%d pools, want %d", n, limits.Pools)
	}

	// Those that are gone give way, even if they have orders.
	b.pause("pool 0", true)
	b.now = b.now.Add(2 * silence)
	for i := range share {
		if refused(at("q", i)) {
			t.Fatalf("after a while: pool %d is refused", i)
		}
	}
	if n := len(b.List(b.now)); n > limits.Pools || n < share {
		t.Errorf("%d pools", n)
	}
}

func TestInstancesAreBounded(t *testing.T) {
	b := newBench(t)
	const share = limits.PoolInstances / shareOfOwner
	for i := range share {
		b.announce(one("low", fmt.Sprint(i)))
	}
	if _, err := b.Announce(b.now, one("low", "more")); !errors.Is(err, ErrTooMany) {
		t.Errorf("%v, want %v", err, ErrTooMany)
	}
	if _, err := b.Announce(b.now, one("another", "more")); !errors.Is(err, ErrTooMany) {
		t.Errorf("in another pool: %v, want %v", err, ErrTooMany)
	}
	b.announce(one("low", "0"))
	leaving := one("low", "never seen")
	leaving.Leaving = true
	b.announce(leaving)
}

func TestRestartedCountsDoNotGoBack(t *testing.T) {
	b := newBench(t)
	r := one("low", "1")
	r.Counts.Completed = 100
	b.announce(r)
	r.Counts.Completed = 3 // the ID is used again
	b.announce(r)
	r.Counts.Completed = 5
	b.announce(r)
	if got := b.List(b.now)[0].Completed; got != 2 {
		t.Errorf("completed %d, want the 2 that were seen", got)
	}
}

func TestRegistryIsSafeForConcurrentUse(t *testing.T) {
	b := newBench(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				now := began.Add(time.Duration(j) * 100 * time.Millisecond)
				r := one(fmt.Sprint("pool ", j%5), fmt.Sprint(i))
				r.Busy, r.Leaving = j%5, j%7 == 0
				if _, err := b.Announce(now, r); err != nil {
					t.Error(err)
				}
				for _, p := range b.List(now) {
					if p.Busy > p.Slots {
						t.Errorf("pool %+v", p)
					}
				}
				if _, err := b.Order(now, r.Name, "", func(o *Orders) { o.Paused = !o.Paused }); err != nil && !errors.Is(err, ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.sweep(began.Add(time.Hour))
	if len(b.full) != 0 {
		t.Errorf("%+v count as full, and there are none", b.full)
	}
}
