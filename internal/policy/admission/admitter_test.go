// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/policy"
)

// parse returns the policy of a text.
func parse(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	return p
}

var noon = time.Unix(1_800_000_000, 0)

func asks(n int, class, level uint8, key string, bytes int64) []AdmitRequest {
	all := make([]AdmitRequest, n)
	for i := range all {
		all[i] = AdmitRequest{policy.Classification{Class: class, Level: level, Key: key}, bytes}
	}
	return all
}

// Whatever is accepted as a policy can admit a message.
func FuzzAdmit(f *testing.F) {
	f.Add([]byte(`{"fairKey": "tenant", "keys": [{"key": "k", "rate": "100/s"}], "watermarks": {"depth": 1, "bytes": "1KiB"},
		"classes": [{"name": "free", "level": "low", "rate": "5/s", "maxMessages": 1, "overflow": "evict"}]}`))
	f.Add([]byte(`{"discipline":"aging","aging":{"interval":"1m","maxLevel":9},"classes":[{"name":"a","level":"9"}]}`))
	f.Add([]byte(`{"classes":[null,{"name":null,"level":1e2,"when":"","rate":5}],"keys":[{}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if p, err := policy.Parse(raw); err == nil {
			NewAdmitter(p).Admit(time.Unix(1, 0), asks(1, 1, 0, "k", 1), new(tally))
		}
	})
}

func TestRateOfAClass(t *testing.T) {
	g := NewAdmitter(parse(t, `{"classes": [{"name": "free", "level": 3, "rate": "10/s"}, {"name": "other", "level": 2}]}`))
	if d := g.Admit(noon, asks(10, 1, 3, "", 1), new(tally)); !d.OK() {
		t.Fatalf("ten at once: %+v", d.Refusal)
	}
	d := g.Admit(noon, asks(1, 1, 3, "", 1), new(tally))
	if d.OK() || d.Refusal.Class != "free" || d.Refusal.Number != 1 || !strings.Contains(d.Refusal.Reason, "10/s") {
		t.Fatalf("the eleventh: %+v", d.Refusal)
	}
	after := d.Refusal.RetryAfter
	if after < 100*time.Millisecond || after > 101*time.Millisecond {
		t.Errorf("retry after %v, want a tenth of a second", after)
	}
	if d := g.Admit(noon, asks(5, 2, 2, "", 1), new(tally)); !d.OK() {
		t.Errorf("another class is rejected: %+v", d.Refusal)
	}
	if d := g.Admit(noon.Add(after), asks(1, 1, 3, "", 1), new(tally)); !d.OK() {
		t.Errorf("retry after the time: %+v", d.Refusal)
	}
}

func TestBatchLargerThanTheBurst(t *testing.T) {
	g := NewAdmitter(parse(t, `{"classes": [{"name": "free", "rate": "10/s"}]}`))
	big := asks(25, 1, 4, "", 1)
	if d := g.Admit(noon, big, new(tally)); !d.OK() {
		t.Fatalf("a full bucket turns a large batch away: %+v", d.Refusal)
	}
	d := g.Admit(noon, asks(1, 1, 4, "", 1), new(tally))
	if d.OK() || d.Refusal.RetryAfter < 1600*time.Millisecond || d.Refusal.RetryAfter > 1601*time.Millisecond {
		t.Errorf("afterwards: %+v, want a refusal for 1.6 s, when 15 owed and 1 are there", d.Refusal)
	}
}

func TestBatchIsAdmittedAsAWhole(t *testing.T) {
	g := NewAdmitter(parse(t, `{"fairKey": "t", "keyDefaults": {"rate": "2/s"}, "classes": [{"name": "a", "rate": "10/s"}]}`))
	mixed := append(asks(2, 1, 4, "x", 1), asks(3, 1, 4, "y", 1)...) // y may owe: three of a burst of two
	if d := g.Admit(noon, mixed, new(tally)); !d.OK() {
		t.Fatalf("first: %+v", d.Refusal)
	}
	mixed = append(asks(2, 1, 4, "z", 1), asks(1, 1, 4, "y", 1)...)
	d := g.Admit(noon, mixed, new(tally))
	if d.OK() || !strings.Contains(d.Refusal.Reason, `key "y"`) {
		t.Fatalf("second: %+v, want y to be rejected", d.Refusal)
	}
	if d := g.Admit(noon, asks(2, 1, 4, "z", 1), new(tally)); !d.OK() {
		t.Errorf("what was refused has used up the rate of z: %+v", d.Refusal)
	}
}

func TestRefund(t *testing.T) {
	g := NewAdmitter(parse(t, `{"fairKey": "t", "keys": [{"key": "x", "rate": "3/s"}], "classes": [{"name": "a", "rate": "3/s"}]}`))
	batch := asks(3, 1, 4, "x", 1)
	for range 5 {
		if d := g.Admit(noon, batch, new(tally)); !d.OK() {
			t.Fatalf("refused after a refund: %+v", d.Refusal)
		}
		g.Refund(batch)
	}
	g.Refund(batch)                                                                     // more than was taken
	for _, one := range [][]AdmitRequest{asks(1, 1, 4, "", 1), asks(1, 0, 4, "x", 1)} { // of the class, of the key
		for range 3 {
			g.Admit(noon, one, new(tally))
		}
		if d := g.Admit(noon, one, new(tally)); d.OK() {
			t.Errorf("a refund has filled the bucket of %+v over its brim", one)
		}
	}
}

// TestRateHolds sends at random and checks the bound that doc.go promises.
func TestRateHolds(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		rate := policy.Rate{Count: float64(1 + random.IntN(50)), Per: []time.Duration{time.Second, time.Minute}[random.IntN(2)]}
		g := NewAdmitter(parse(t, fmt.Sprintf(`{"classes": [{"name": "a", "rate": "%v"}]}`, rate)))
		now, sent, largest := noon, 0.0, 0
		for range 500 {
			now = now.Add(time.Duration(random.Int64N(int64(rate.Per) / 10)))
			n := 1 + random.IntN(30)
			if !g.Admit(now, asks(n, 1, 4, "", 1), new(tally)).OK() {
				continue
			}
			sent += float64(n)
			largest = max(largest, n)
			most := rate.PerSecond()*now.Sub(noon).Seconds() + rate.Burst() + float64(largest)
			if sent > most+1e-6 {
				t.Fatalf("seed %d: %v admitted by %v after %v, at most %v may be", seed, sent, rate, now.Sub(noon), most)
			}
		}
		// And it does not reject more than it must.
		if least := rate.PerSecond() * now.Sub(noon).Seconds() / 2; sent < least {
			t.Errorf("seed %d: only %v admitted by %v after %v", seed, sent, rate, now.Sub(noon))
		}
	}
}

func TestMemoryIsThatOfActiveKeys(t *testing.T) {
	g := NewAdmitter(parse(t, `{"fairKey": "t", "keyDefaults": {"rate": "10/s"}}`))
	now := noon
	for i := range 10_000 {
		now = now.Add(10 * time.Millisecond) // a key is full again after 0.1 s
		g.Admit(now, asks(1, 0, 4, fmt.Sprint("key-", i), 1), new(tally))
	}
	if n := len(g.keys); n > 2*leastSweep {
		t.Errorf("%d keys are kept, of which ten are in use", n)
	}
}

func TestLimitOfAClass(t *testing.T) {
	g := NewAdmitter(parse(t, `{"classes": [
		{"name": "r", "level": 3, "maxMessages": 3, "overflow": "reject"},
		{"name": "e", "level": 3, "maxMessages": 3, "bytes": 100, "overflow": "evict"}]}`))
	var d tally
	for range 3 {
		d.Add(1, 3, 10)
		d.Add(2, 3, 10)
	}
	if r := g.Admit(noon, asks(1, 1, 3, "", 10), &d).Refusal; r == nil || r.Class != "r" || r.RetryAfter != time.Second {
		t.Errorf("at its limit: %+v, want a refusal for a second", r)
	}
	d.Rate = 0.5
	if r := g.Admit(noon, asks(1, 1, 3, "", 10), &d).Refusal; r == nil || r.RetryAfter != 2*time.Second {
		t.Errorf("with one leaving every two seconds: %+v", r)
	}
	for _, tt := range []struct {
		name  string
		batch []AdmitRequest
		want  []Eviction
	}{
		{"two of e", asks(2, 2, 3, "", 10), []Eviction{{2, policy.Depth{Count: 2, Bytes: 0}}}},
		{"a large one of e", asks(1, 2, 3, "", 80), []Eviction{{2, policy.Depth{Count: 1, Bytes: 10}}}},
	} {
		got := g.Admit(noon, tt.batch, &d)
		if !got.OK() || !reflect.DeepEqual(got.Evict, tt.want) {
			t.Errorf("%s: %+v, want to evict %+v", tt.name, got, tt.want)
		}
	}
	if got := g.Admit(noon, asks(4, 2, 3, "", 10), &d); got.OK() {
		t.Errorf("a batch larger than the limit: %+v, want a refusal, as it cannot evict itself", got)
	}
}

func TestWatermark(t *testing.T) {
	const three = `{"watermarks": {"depth": 10}, "classes": [
		{"name": "high", "level": 8, "when": "a = 1"}, {"name": "mid", "level": 5, "when": "a = 2", "overflow": %q}, {"name": "low", "level": 2, "overflow": %q}]}`
	fill := func(high, mid, low int) *tally {
		d := new(tally)
		for class, n := range []int{high, mid, low} {
			for range n {
				d.Add(uint8(class+1), []uint8{8, 5, 2}[class], 1)
			}
		}
		return d
	}
	for _, tt := range []struct {
		name           string
		mid, low       string
		depths         *tally
		class, level   uint8
		refused        bool
		evicted, count int // class and how many
	}{
		{"below the mark", "reject", "reject", fill(3, 3, 3), 3, 2, false, 0, 0},
		{"low at the mark", "reject", "reject", fill(3, 3, 4), 3, 2, true, 0, 0},
		{"mid at the mark", "reject", "reject", fill(3, 3, 4), 2, 5, false, 0, 0},
		{"mid with too much above", "reject", "reject", fill(3, 7, 4), 2, 5, true, 0, 0},
		{"high with too much below", "reject", "reject", fill(3, 7, 4), 1, 8, false, 0, 0},
		{"high with too much high", "reject", "reject", fill(10, 0, 0), 1, 8, true, 0, 0},
		{"mid makes low go", "reject", "evict", fill(3, 3, 4), 2, 5, false, 3, 1},
		{"high makes low go before mid", "evict", "evict", fill(3, 3, 4), 1, 8, false, 3, 1},
		{"high makes mid go without low", "evict", "evict", fill(3, 7, 0), 1, 8, false, 2, 1},
		{"low makes its own oldest go", "reject", "evict", fill(3, 3, 4), 3, 2, false, 3, 1},
		{"low has nothing of its own to go", "reject", "evict", fill(3, 7, 0), 3, 2, true, 0, 0},
		{"no class, by its own level", "reject", "reject", fill(3, 3, 4), 0, 0, true, 0, 0},
		{"no class, but a high level", "reject", "reject", fill(3, 3, 4), 0, 9, false, 0, 0},
	} {
		g := NewAdmitter(parse(t, fmt.Sprintf(three, tt.mid, tt.low)))
		got := g.Admit(noon, asks(1, tt.class, tt.level, "", 1), tt.depths)
		var want []Eviction
		if tt.count > 0 {
			want = []Eviction{{uint8(tt.evicted), policy.Depth{Count: int64(tt.count), Bytes: 0}}}
		}
		if got.OK() == tt.refused || !reflect.DeepEqual(got.Evict, want) {
			t.Errorf("%s: refusal %+v, evict %+v; want refused %t, evict %+v", tt.name, got.Refusal, got.Evict, tt.refused, want)
		}
	}
}

func TestNoEvictionForTheSameLevel(t *testing.T) {
	g := NewAdmitter(parse(t, `{"watermarks": {"depth": 10}, "classes": [
		{"name": "a", "level": 5, "when": "a = 1"}, {"name": "b", "level": 5, "when": "a = 2", "overflow": "evict"}, {"name": "low", "level": 2}]}`))
	d := new(tally)
	for range 5 {
		d.Add(2, 5, 1)
		d.Add(3, 2, 1)
	}
	if got := g.Admit(noon, asks(1, 1, 5, "", 1), d); !got.OK() || got.Evict != nil {
		t.Errorf("%+v, want a to be admitted without an eviction of low", got)
	}
}

// TestLowestIsRejectedFirst fills queues at random: who is refused at a level is
// refused at every level below, and a queue whose classes all evict stays within
// its mark.
func TestLowestIsRejectedFirst(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 2))
		shed := []string{"reject", "evict"}[random.IntN(2)]
		var classes []string
		for i := range 4 {
			classes = append(classes, fmt.Sprintf(`{"name": "c%d", "level": %d, "when": "a = %d", "overflow": %q}`, i, 2*i+1, i, shed))
		}
		mark := 1 + random.IntN(30)
		g := NewAdmitter(parse(t, fmt.Sprintf(`{"watermarks": {"depth": %d}, "classes": [%s]}`, mark, strings.Join(classes, ","))))
		d := new(tally)
		for range 200 {
			refused := false
			for class := 4; class >= 1; class-- { // from the highest down
				ok := g.Admit(noon, asks(1, uint8(class), uint8(2*class-1), "", 1), d).OK()
				if ok && refused && shed == "reject" {
					t.Fatalf("seed %d: class %d is admitted, but not one above it", seed, class)
				}
				refused = refused || !ok
			}
			class := uint8(1 + random.IntN(4))
			got := g.Admit(noon, asks(1, class, 2*class-1, "", 1), d)
			for _, e := range got.Evict {
				for range e.Count {
					d.Remove(e.Class, 2*e.Class-1, 1)
				}
			}
			if got.OK() {
				d.Add(class, 2*class-1, 1)
			}
			total := d.Total().Count
			if shed == "evict" && total > int64(mark) || total > int64(4*mark) || d.AtLeast(7).Count > int64(mark) {
				t.Fatalf("seed %d: %d waiting, %d of them at the top, with a mark of %d and %s", seed, total, d.AtLeast(7).Count, mark, shed)
			}
		}
	}
}

func TestReplaceKeepsWhatIsUsedUp(t *testing.T) {
	g := NewAdmitter(parse(t, `{"fairKey": "t", "keyDefaults": {"rate": "1/s"}, "classes": [{"name": "a", "rate": "5/s"}]}`))
	g.Admit(noon, asks(5, 1, 4, "x", 1), new(tally))
	g.Replace(parse(t, `{"fairKey": "t", "keyDefaults": {"rate": "9/s"}, "classes": [{"name": "new", "when": "a = 1"}, {"name": "a", "rate": "5/s"}]}`))
	if g.Admit(noon, asks(1, 2, 4, "", 1), new(tally)).OK() {
		t.Error("the class has a full bucket again")
	}
	if !g.Admit(noon, asks(1, 1, 4, "x", 1), new(tally)).OK() {
		t.Error("the key is held to a rate that no longer is")
	}
}

func BenchmarkAdmit(b *testing.B) {
	g := NewAdmitter(parse(b, `{"fairKey": "t", "keyDefaults": {"rate": "1000000/s"}, "watermarks": {"depth": 100},
		"classes": [{"name": "a", "rate": "1000000000/s", "maxMessages": 1000}]}`))
	batch, d, now := asks(1, 1, 4, "x", 1), new(tally), noon
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Millisecond)
		if !g.Admit(now, batch, d).OK() {
			b.Fatal("refused")
		}
	}
}
