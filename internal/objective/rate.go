// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"math"
	"time"
)

// spans are the times over which a Rate looks back.
var spans = [3]time.Duration{time.Second, time.Minute, 15 * time.Minute}

// foldAfter is how long events are only counted before they are folded into the
// averages, which costs exponentials.
const foldAfter = 200 * time.Millisecond

// Rate is how often something happens, as averages over a second, a minute and
// a quarter of an hour in which the past fades exponentially. The zero value is
// ready.
type Rate struct {
	pending uint64
	total   uint64
	from    int64 // first event or look, in nanoseconds; zero is none yet
	folded  int64 // averages are as of
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

// fold takes the pending events, which all came within foldAfter of the last time,
// into the averages, and the silence after them. Time that goes back is taken as
// standing still.
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

// At returns the rates at now. Before a span has passed they are what happened in it: one
// message is one sixtieth per second in the last minute, however soon somebody looks.
func (r *Rate) At(now time.Time) Rates {
	past := r.look(now)
	if past <= 0 {
		return Rates{}
	}
	var out [3]float64
	for i, span := range spans {
		if out[i] = float64(r.total) / span.Seconds(); past >= span {
			out[i] = r.average[i] / r.seen(span)
		}
	}
	return Rates{out[0], out[1], out[2]}
}

// Estimate returns how many events per second there will be if it goes on like in the last
// minute, or in the time so far. It is for who plans by it, and has no warm-up of a minute.
func (r *Rate) Estimate(now time.Time) float64 {
	if r.look(now) <= 0 {
		return 0
	}
	const span = time.Minute
	return r.average[1] / max(r.seen(span), -math.Expm1(-float64(leastSeen)/float64(span)))
}

// leastSeen is the shortest time from which anything is concluded: a message that came just
// now does not make a thousand per second.
const leastSeen = 5 * time.Second

// look brings the averages up to now and returns how long there have been events.
func (r *Rate) look(now time.Time) time.Duration {
	at := now.UnixNano()
	if r.from == 0 || at <= r.from {
		return 0
	}
	if at-r.folded >= int64(foldAfter) || r.folded == r.from {
		r.fold(at)
	}
	return time.Duration(max(at, r.folded) - r.from)
}

// seen is the part of the truth that an average which began at zero holds so far.
func (r *Rate) seen(span time.Duration) float64 {
	return -math.Expm1(-float64(r.folded-r.from) / float64(span))
}
