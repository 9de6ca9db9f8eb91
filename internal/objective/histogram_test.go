// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBucketsTile(t *testing.T) {
	end := uint64(0)
	for b := range buckets {
		from, to := bounds(b)
		if from != end || to <= from {
			t.Fatalf("bucket %d is %d..%d, want it to begin at %d", b, from, to, end)
		}
		if bucketOf(from) != b || bucketOf(to-1) != b {
			t.Fatalf("%d and %d are in buckets %d and %d, want %d", from, to-1, bucketOf(from), bucketOf(to-1), b)
		}
		end = to
	}
	if end != 1<<topBit || bucketOf(end) != buckets-1 || bucketOf(math.MaxUint64) != buckets-1 {
		t.Errorf("the last bucket ends at %d, want 2^%d and all above in it", end, topBit)
	}
}

// TestHistogramIsClose compares with a sorted list.
func TestHistogramIsClose(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var h Histogram
	var all []time.Duration
	for range 20_000 {
		d := 20 * time.Duration(math.Exp(random.Float64()*20)*float64(time.Microsecond))
		all = append(all, d)
		h.Record(d)
	}
	slices.Sort(all)
	last := time.Duration(0)
	for _, q := range []float64{0, .01, .1, .5, .9, .95, .99, .999, 1} {
		want := all[max(int(math.Ceil(q*float64(len(all))))-1, 0)]
		got := h.Quantile(q)
		if off := math.Abs(float64(got-want)) / float64(want); off > .032 {
			t.Errorf("quantile %v is %v, want %v: %.1f %% off", q, got, want, 100*off)
		}
		if got < last {
			t.Errorf("quantile %v is %v, less than %v of a smaller share", q, got, last)
		}
		last = got
		below, _ := slices.BinarySearch(all, want+1)
		if got, want := h.Within(want), float64(below)/float64(len(all)); math.Abs(got-want) > .004 {
			t.Errorf("share within quantile %v is %v, want %v", q, got, want)
		}
	}
	if h.Count() != 20_000 {
		t.Errorf("count %d", h.Count())
	}
}

func TestEmptyHistogram(t *testing.T) {
	var h Histogram
	if h.Quantile(.5) != 0 || h.Mean() != 0 || h.Within(0) != 1 || h.Count() != 0 {
		t.Error("an empty histogram has values")
	}
	h.Record(-time.Second)
	if h.Quantile(1) != 0 || h.Within(0) != 1 {
		t.Errorf("a negative duration is %v", h.Quantile(1))
	}
}

func TestMergeIsRecordingBoth(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	var a, b, both Histogram
	for range 1000 {
		d := time.Duration(random.Int64N(int64(time.Hour)))
		if random.IntN(2) == 0 {
			a.Record(d)
		} else {
			b.Record(d)
		}
		both.Record(d)
	}
	a.Merge(&b)
	if a != both {
		t.Error("merging is not the same as recording everything in one")
	}
	full := Histogram{n: math.MaxUint32}
	full.counts[0] = math.MaxUint32
	full.Merge(&full)
	full.Record(0)
	if full.counts[0] != math.MaxUint32 {
		t.Errorf("a full count overflowed to %d", full.counts[0])
	}
}

func TestHistogramRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for n := range 50 {
		var h, back Histogram
		for range n * n {
			h.Record(time.Duration(math.Exp(random.Float64() * 40)))
		}
		h.Record(1 << 62)
		s := &source{rest: h.Append(nil)}
		if back.read(s); s.err != nil || len(s.rest) > 0 || back != h {
			t.Fatalf("%d lengths do not round-trip: %v, %d bytes left", n*n, s.err, len(s.rest))
		}
	}
}

func TestRates(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var r Rate
	if r.At(now) != (Rates{}) {
		t.Errorf("before anything: %+v", r.At(now))
	}
	for range 100 * 60 { // 100 a second for a minute
		now = now.Add(10 * time.Millisecond)
		r.Add(now, 1)
	}
	got := r.At(now)
	for _, rate := range []float64{got.Second, got.Minute, got.Quarter * 15, r.Estimate(now)} {
		if math.Abs(rate-100) > 3 {
			t.Errorf("after a minute of 100 per second: %+v, estimated %.3g", got, r.Estimate(now))
		}
	}
	if r.Total() != 6000 {
		t.Errorf("total %d", r.Total())
	}
	got = r.At(now.Add(time.Minute)) // of silence
	if got.Second > .1 || got.Minute < 20 || got.Minute > 60 || math.Abs(got.Quarter*15-100) > 3 {
		t.Errorf("after a minute of silence: %+v", got)
	}
	if back := r.At(now); back != got {
		t.Errorf("clock set back: %+v, want the rates unchanged at %+v", back, got)
	}
}

// One message is one message: 1/60 per second in the last minute, from the first
// moment on. A minute later it has left the minute.
func TestRateOfOneMessage(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	for _, after := range []time.Duration{time.Millisecond, 25 * time.Millisecond, time.Second, 30 * time.Second, 59 * time.Second} {
		var r Rate
		r.Add(start, 1)
		if got := r.At(start.Add(after)).Minute; math.Abs(got-1./60) > 1e-9 {
			t.Errorf("%v after the only message: %.4g per second in the last minute, want %.4g", after, got, 1./60)
		}
		if got := r.Estimate(start.Add(after)); got > 1 {
			t.Errorf("%v after the only message: it is expected to go on with %.4g per second", after, got)
		}
	}
	var r Rate
	for i := range 10 { // one a second for ten seconds
		r.Add(start.Add(time.Duration(i)*time.Second), 1)
	}
	now := start.Add(10 * time.Second)
	if got := r.At(now); math.Abs(got.Minute-10./60) > 1e-9 || math.Abs(got.Quarter-10./900) > 1e-9 || got.Second > 1 {
		t.Errorf("ten messages in ten seconds: %+v", got)
	}
	if got := r.Estimate(now); math.Abs(got-1) > .1 {
		t.Errorf("ten messages in ten seconds are expected to go on with %.3g per second, want 1", got)
	}
	if got := r.At(start.Add(2 * time.Minute)).Minute; got > 10./60 {
		t.Errorf("two minutes later: %.3g per second in the last minute", got)
	}
}

func BenchmarkRecord(b *testing.B) {
	var h Histogram
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Record(time.Duration(i) * 1000)
	}
}
