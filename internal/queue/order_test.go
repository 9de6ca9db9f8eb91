// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"testing"
	"time"
)

// send enqueues n messages and fails the test if it cannot.
func send(t testing.TB, q *Queue, now time.Time, a Arrival, n int) {
	t.Helper()
	var out Effects
	as := make([]Arrival, n)
	for i := range as {
		as[i] = a
	}
	if err := q.Enqueue(now, as, make([]SeqNo, n), &out); err != nil {
		t.Fatal(err)
	}
}

// serve takes a message and completes it at once.
func serve(t testing.TB, q *Queue, now time.Time) Delivery {
	t.Helper()
	var out Effects
	d, ok := q.Take(now, TakeOptions{}, &out)
	if !ok {
		t.Fatal("nothing to take")
	}
	if _, err := q.Complete(now, d.Token, &out); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWeightedSharesAreWithinTwoPercent(t *testing.T) {
	weights := []uint32{1, 2, 0, 7, 40}
	q := New(Config{LockFor: time.Minute, Order: Order{Discipline: Weighted, Weight: weights}}, 1)
	for l := range weights {
		send(t, q, epochStart, Arrival{Level: Level(l)}, 12_000)
	}
	const total = 10_200 // of weight 51, zero being one
	got := make([]int, len(weights))
	for range total {
		got[serve(t, q, epochStart).Level]++
	}
	for l, w := range weights {
		want := total * max(int(w), 1) / 51
		if diff := got[l] - want; diff*50 > want || -diff*50 > want {
			t.Errorf("level %d of weight %d was served %d times, want %d", l, w, got[l], want)
		}
	}
}

func TestWeightedLevelDoesNotSaveUpWhileItIsEmpty(t *testing.T) {
	q := New(Config{LockFor: time.Minute, Order: Order{Discipline: Weighted}}, 1)
	send(t, q, epochStart, Arrival{Level: 1}, 1000)
	for range 500 {
		serve(t, q, epochStart)
	}
	send(t, q, epochStart, Arrival{Level: 2}, 100)
	got := 0
	for range 20 {
		if serve(t, q, epochStart).Level == 2 {
			got++
		}
	}
	if got < 9 || got > 11 {
		t.Errorf("the level that was empty got %d of 20 deliveries, want half of them", got)
	}
}

func TestOneMessageBehindAFloodIsNext(t *testing.T) {
	for d := Strict; d <= Weighted; d++ {
		q := New(Config{LockFor: time.Minute, Order: Order{Discipline: d, Fair: true, AgingInterval: time.Second, AgingMaxLevel: 9}}, 1)
		send(t, q, epochStart, Arrival{Key: "flood"}, 100_000)
		now := epochStart.Add(time.Minute)
		serve(t, q, now)
		send(t, q, now, Arrival{Key: "one"}, 1)
		for i := 1; ; i++ {
			if serve(t, q, now).Key == "one" {
				break
			}
			if i == 2 {
				t.Fatalf("discipline %d: the one message is not among the next %d", d, i)
			}
		}
	}
}

func TestFairKeysShareByWeight(t *testing.T) {
	order := Order{Fair: true, Shares: []Share{{Key: "big", Weight: 3}}}
	q := New(Config{LockFor: time.Minute, Order: order}, 1)
	for _, key := range []string{"big", "small", "tiny"} {
		send(t, q, epochStart, Arrival{Key: key}, 2000)
	}
	got := map[string]int{}
	for range 1000 {
		got[serve(t, q, epochStart).Key]++
	}
	if got["big"] != 600 || got["small"] != 200 || got["tiny"] != 200 {
		t.Errorf("served %v, want 600, 200 and 200", got)
	}
}

func TestFairKeysShareWhatIsInFlight(t *testing.T) {
	order := Order{Fair: true, Shares: []Share{{Key: "a", Weight: 2}}}
	q := New(Config{LockFor: time.Hour, Order: order}, 1)
	send(t, q, epochStart, Arrival{Key: "a"}, 100)
	send(t, q, epochStart, Arrival{Key: "b"}, 100)
	got := map[string]int{}
	var out Effects
	for range 30 { // none of them ever ends
		d, _ := q.Take(epochStart, TakeOptions{}, &out)
		got[d.Key]++
	}
	if got["a"] != 20 || got["b"] != 10 {
		t.Errorf("in flight %v, want a with 20 and b with 10", got)
	}
}

func TestSendingOneAtATimeIsNoAdvantage(t *testing.T) {
	q := New(Config{LockFor: time.Minute, Order: Order{Fair: true}}, 1)
	send(t, q, epochStart, Arrival{Key: "backlog"}, 100)
	got := 0
	for range 50 {
		if q.LevelCount(0) == 100-int64(got) { // the other one has nothing waiting
			send(t, q, epochStart, Arrival{Key: "trickle"}, 1)
		}
		if serve(t, q, epochStart).Key == "backlog" {
			got++
		}
	}
	if got < 24 || got > 26 {
		t.Errorf("the backlog got %d of 50 turns, want half of them", got)
	}
}

func TestFairKeysLeaveNothingBehind(t *testing.T) {
	q := New(Config{LockFor: time.Minute, Order: Order{Fair: true, DefaultShare: Share{Rate: 1}}}, 1)
	now := epochStart
	for i := range 1000 {
		send(t, q, now, Arrival{Key: fmt.Sprint("key", i)}, 1)
		serve(t, q, now)
	}
	var out Effects
	for q.Tick(now.Add(time.Hour), &out) {
	}
	if got := q.core.Index.KnownKeys(); got != 1 {
		t.Errorf("%d keys are remembered, want only that of no key", got)
	}
	if at, ok := q.NextDeadline(); ok {
		t.Errorf("next deadline %v, want none", at)
	}
}

func TestRateAllowsABurst(t *testing.T) {
	q := New(Config{LockFor: time.Hour, Order: Order{Fair: true, DefaultShare: Share{Rate: 10, Burst: 5}}}, 1)
	send(t, q, epochStart, Arrival{Key: "a"}, 1000)
	var out Effects
	got := 0
	for now := epochStart; now.Before(epochStart.Add(10 * time.Second)); {
		for q.HasReady(now, TakeOptions{}) {
			if _, ok := q.Take(now, TakeOptions{}, &out); !ok {
				t.Fatal("ready, but nothing to take")
			}
			got++
		}
		now, _ = q.NextDeadline()
		q.Tick(now, &out)
	}
	if want := 5 + 99; got != want {
		t.Errorf("delivered %d in ten seconds, want %d", got, want)
	}
}

// A pace may be slower than one an hour, down to one in a lifetime, and a burst of
// such a pace must not overflow (B11).
func TestSlowPace(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		share Share
		days  int
		want  int
	}{
		{Share{Rate: 1 / day.Seconds()}, 10, 10},
		{Share{Rate: 3 / day.Seconds(), Burst: 3}, 10, 3 + 29},
		{Share{Rate: 1 / (7 * day).Seconds()}, 14, 2},
		{Share{Rate: 1e-300}, 365, 1},
		{Share{Rate: 1 / day.Seconds(), Burst: 1 << 31}, 2, 1000},
	} {
		q := New(Config{LockFor: time.Hour, Order: Order{Fair: true, DefaultShare: test.share}}, 1)
		send(t, q, epochStart, Arrival{Key: "a"}, 1000)
		var out Effects
		got, end := 0, epochStart.Add(time.Duration(test.days)*day)
		for now := epochStart; now.Before(end); {
			for {
				if _, ok := q.Take(now, TakeOptions{ReceiveAndDelete: true}, &out); !ok {
					break
				}
				got++
			}
			next, ok := q.NextDeadline()
			if !ok {
				break
			}
			now = next
			q.Tick(now, &out)
		}
		if got != test.want {
			t.Errorf("%+v delivered %d in %d days, want %d", test.share, got, test.days, test.want)
		}
	}
}

func TestConfigureKeepsOrderAndCountsInFlight(t *testing.T) {
	q := New(Config{LockFor: time.Hour}, 1)
	send(t, q, epochStart, Arrival{Key: "a"}, 5)
	send(t, q, epochStart, Arrival{Key: "b"}, 5)
	var out Effects
	q.Take(epochStart, TakeOptions{}, &out)
	cfg := q.Config()
	cfg.Order = Order{Fair: true, DefaultShare: Share{Cap: 1}}
	q.Configure(epochStart, cfg, &out)
	for q.Reorder(3) {
	}
	if d, ok := q.Take(epochStart, TakeOptions{}, &out); !ok || d.Key != "b" {
		t.Errorf("took %q, %t; a has one in flight already, want b", d.Key, ok)
	}
	if d, ok := q.Take(epochStart, TakeOptions{}, &out); ok {
		t.Errorf("took %d although both keys are at their cap", d.Seq)
	}
	if err := q.Check(); err != nil {
		t.Error(err)
	}
}
