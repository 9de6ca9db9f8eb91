// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue"
)

var noon = time.Unix(1_800_000_000, 0)

func TestOrder(t *testing.T) {
	o := parse(t, shop).Order()
	want := ordering.Order{
		Discipline: ordering.Deadline, Objective: []time.Duration{2: 10 * time.Minute, 8: 10 * time.Second}, Fair: true,
		DefaultShare: ordering.Share{Weight: 1, Cap: 5},
		Shares:       []ordering.Share{{Key: "contoso", Weight: 3, Cap: 10, Rate: .5, Burst: 30}},
	}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("got  %+v\nwant %+v", o, want)
	}
	shared := parse(t, `{"discipline": "weighted", "classes": [{"name": "a", "level": 3, "weight": 5}, {"name": "b", "level": 3}, {"name": "c", "level": 1, "weight": 2}]}`)
	if got := shared.Order().Weight; !slices.Equal(got, []uint32{0, 2, 0, 6}) {
		t.Errorf("weights %v, want 6 at level 3 and 2 at level 1", got)
	}
	due := parse(t, `{"discipline": "deadline", "classes": [{"name": "a", "level": 1, "when": "x = 1", "objective": {"wait": "2m"}},
		{"name": "b", "level": 1, "when": "x = 2", "objective": {"wait": "1m"}}, {"name": "c", "level": 1, "objective": {"wait": "3m"}}]}`)
	if got := due.Order().Objective; !slices.Equal(got, []time.Duration{1: time.Minute}) {
		t.Errorf("objectives %v, want the shortest", got)
	}
	aging := parse(t, `{"discipline": "aging", "aging": {"interval": "1m", "maxLevel": "high"}}`).Order()
	if !reflect.DeepEqual(aging, ordering.Order{Discipline: ordering.Aging, AgingInterval: time.Minute, AgingMaxLevel: 7}) {
		t.Errorf("aging: %+v", aging)
	}
}

// machine is a real queue under the order of a policy.
func machine(o ordering.Order) *queue.Queue {
	return queue.New(queue.Config{LockFor: time.Hour, Order: o}, 1)
}

// waiting is a message in a test of bounds.
type waiting struct {
	seq   queue.SeqNo
	level uint8
	at    time.Time
}

// TestBoundsHold plays at random on the real machine and checks what Consequences
// tells: no message is passed by one that came later than the bound allows.
func TestBoundsHold(t *testing.T) {
	const aging = `{"discipline": "aging", "aging": {"interval": "1m", "maxLevel": 7}, "classes": [`
	const deadline = `{"discipline": "deadline", "classes": [`
	var each []string
	for l := range 9 {
		each = append(each, fmt.Sprintf(`{"name": "c%d", "level": %d, "when": "a = %d", "objective": {"wait": "%dm"}}`, l, l, l, 10-l))
	}
	classes := strings.Join(each, ",") + "]}"
	for _, tt := range []struct {
		policy string
		passes func(first, later waiting, late []waiting) bool // by the bound
	}{
		{aging + classes, func(first, later waiting, _ []waiting) bool {
			return later.level > 7 && later.level > first.level ||
				later.level > first.level && later.at.Sub(first.at) < time.Duration(later.level-first.level)*time.Minute
		}},
		{deadline + classes, func(first, later waiting, late []waiting) bool {
			unbounded := slices.ContainsFunc(late, func(w waiting) bool { return first.level <= w.level && w.level <= later.level })
			return later.level > first.level && (unbounded || later.at.Sub(first.at) <= time.Duration(later.level-first.level)*time.Minute)
		}},
	} {
		p := parse(t, tt.policy)
		for seed := range uint64(20) {
			play(t, p, rand.New(rand.NewPCG(seed, 3)), 5+int(seed%2), tt.passes)
		}
	}
}

// play enqueues so many of nine times, and takes the other times.
func play(t *testing.T, p *Policy, random *rand.Rand, enqueues int, passes func(first, later waiting, late []waiting) bool) {
	t.Helper()
	q, now := machine(p.Order()), noon
	var out queue.Effects
	var line []waiting
	passed := 0
	for range 1000 {
		now = now.Add(time.Duration(random.Int64N(int64(20 * time.Second))))
		if random.IntN(9) < enqueues {
			level, seqs := uint8(random.IntN(9)), make([]queue.SeqNo, 1)
			if err := q.Enqueue(now, []queue.Arrival{{Level: queue.Level(level)}}, seqs, &out); err != nil {
				t.Fatal(err)
			}
			line = append(line, waiting{seqs[0], level, now})
		} else if d, ok := q.Take(now, queue.TakeOptions{ReceiveAndDelete: true}, &out); ok {
			i := slices.IndexFunc(line, func(w waiting) bool { return w.seq == d.Seq })
			late := slices.DeleteFunc(slices.Clone(line), func(w waiting) bool { return now.Sub(w.at) <= p.objectives()[w.level] })
			for _, w := range line[:i] {
				passed++
				if !passes(w, line[i], late) {
					t.Fatalf("%v: level %d of %v goes ahead of level %d of %v", p.Discipline, line[i].level, line[i].at, w.level, w.at)
				}
			}
			line = slices.Delete(line, i, i+1)
		}
		out.Reset()
	}
	if passed == 0 {
		t.Fatal("no message ever passed another: the test shows nothing")
	}
}

// TestWeightedBoundHolds checks how many deliveries of others come between two of a
// class, and the shares, while all have messages.
func TestWeightedBoundHolds(t *testing.T) {
	weights := []int{1, 3, 8, 2}
	var classes []string
	for l, w := range weights {
		classes = append(classes, fmt.Sprintf(`{"name": "c%d", "level": %d, "weight": %d}`, l, l, w))
	}
	q := machine(parse(t, `{"discipline": "weighted", "classes": [`+strings.Join(classes, ",")+`]}`).Order())
	var out queue.Effects
	const n = 2_800
	for l := range weights {
		if err := q.Enqueue(noon, slices.Repeat([]queue.Arrival{{Level: queue.Level(l)}}, n), make([]queue.SeqNo, n), &out); err != nil {
			t.Fatal(err)
		}
	}
	served, since := make([]int, 4), make([]int, 4)
	for range n {
		d, _ := q.Take(noon, queue.TakeOptions{ReceiveAndDelete: true}, &out)
		out.Reset()
		for l := range weights {
			if since[l]++; l == int(d.Level) {
				since[l] = 0
				served[l]++
			}
			most := 0
			for o, w := range weights {
				if o != l {
					most += w/weights[l] + 1
				}
			}
			if since[l] > most {
				t.Fatalf("%d deliveries without one of level %d, at most %d are promised", since[l], l, most)
			}
		}
	}
	for l, w := range weights {
		if got, want := float64(served[l]), float64(n*w)/14; got < .98*want || got > 1.02*want {
			t.Errorf("level %d of weight %d has %v of %d deliveries, want %v", l, w, got, n, want)
		}
	}
}
