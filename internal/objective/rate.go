// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"math"
	"time"
)

// spans are the durations over which a Rate averages.
var spans = [3]time.Duration{time.Second, time.Minute, 15 * time.Minute}

// foldAfter is how long events are only counted before they are folded into the
// averages, which costs exponentials.
const foldAfter = 200 * time.Millisecond

// Rate counts events and averages them over a second, a minute and a quarter of
// an hour, with exponential decay. The zero value is ready to use.
type Rate struct {
	pending uint64
	total   uint64
	from    int64 // first event or query, in nanoseconds; zero is none yet
	folded  int64 // time of the averages
	average [3]float64
}

// Rates are events per second over the three spans.
type Rates struct {
	Second  float64 `json:"1s"`
	Minute  float64 `json:"1m"`
	Quarter float64 `json:"15m"`
}

// Add counts n events at now.
func (r *Rate) Add(now time.Time, n int) { r.add(now.UnixNano(), uint64(n)) }

func (r *Rate) add(now int64, n uint64) {
	if now-r.folded >= int64(foldAfter) {
		r.fold(now)
	}
	r.pending += n
	r.total += n
}

// fold adds the pending events, which all happened within foldAfter of the last
// fold, to the averages, and lets the averages decay for the rest of the time.
// If now is before the last fold, nothing changes.
func (r *Rate) fold(now int64) {
	if r.from == 0 {
		r.from, r.folded = now, now
		return
	}
	past := now - r.folded
	if past <= 0 {
		return
	}
	busy := min(past, int64(foldAfter))
	rate := float64(r.pending) / time.Duration(busy).Seconds()
	for i, span := range spans {
		r.average[i] += (rate - r.average[i]) * -math.Expm1(-float64(busy)/float64(span))
		if past > busy {
			r.average[i] *= math.Exp(-float64(past-busy) / float64(span))
		}
	}
	r.pending, r.folded = 0, now
}

// Total returns how many events there were.
func (r *Rate) Total() uint64 { return r.total }

// At returns the rates at now. Before a span has passed, a rate is the number
// of events so far divided by the span: one message is one sixtieth per second
// in the last minute, from the first moment on.
func (r *Rate) At(now time.Time) Rates {
	past := r.update(now)
	if past <= 0 {
		return Rates{}
	}
	var out [3]float64
	for i, span := range spans {
		if out[i] = float64(r.total) / span.Seconds(); past >= span {
			out[i] = r.average[i] / r.weight(span)
		}
	}
	return Rates{out[0], out[1], out[2]}
}

// Estimate returns the expected number of events per second, from the last
// minute or from the time so far. It is for capacity planning and has no
// warm-up of a minute.
func (r *Rate) Estimate(now time.Time) float64 {
	if r.update(now) <= 0 {
		return 0
	}
	const span = time.Minute
	return r.average[1] / max(r.weight(span), -math.Expm1(-float64(minObserved)/float64(span)))
}

// minObserved is the shortest time that an estimate is based on. Otherwise a
// message that arrived a millisecond ago would be a thousand per second.
const minObserved = 5 * time.Second

// update brings the averages up to now and returns the time since the first
// event.
func (r *Rate) update(now time.Time) time.Duration {
	at := now.UnixNano()
	if r.from == 0 || at <= r.from {
		return 0
	}
	if at-r.folded >= int64(foldAfter) || r.folded == r.from {
		r.fold(at)
	}
	return time.Duration(max(at, r.folded) - r.from)
}

// weight is the share of the true rate that an average which began at zero has
// reached.
func (r *Rate) weight(span time.Duration) float64 {
	return -math.Expm1(-float64(r.folded-r.from) / float64(span))
}
