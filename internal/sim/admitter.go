// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/policy/admission"
	"github.com/triagemq/triagemq/internal/queue"
)

// errThrottled is what a policy that turns messages away answers.
var errThrottled = errors.New("throttled")

// depth is a number of messages or of bytes.
type depth struct{ count, bytes int64 }

// spell writes a depth as a policy does; a count has several names.
func (d depth) spell(count string) string {
	if d.bytes > 0 {
		return fmt.Sprintf(`{"bytes": %d}`, d.bytes)
	}
	return fmt.Sprintf(`{%q: %d}`, count, d.count)
}

// over returns by how much so many messages exceed a limit, in what it counts.
func (d depth) over(ms []*modelMessage) (excess int64) {
	switch {
	case d.count > 0:
		return int64(len(ms)) - d.count
	case d.bytes > 0:
		return d.size(ms) - d.bytes
	}
	return 0
}

// size returns how much messages are in what the limit counts.
func (d depth) size(ms []*modelMessage) (n int64) {
	for _, m := range ms {
		if d.bytes > 0 {
			n += int64(m.size) // a saved state does not count
		} else {
			n++
		}
	}
	return n
}

// modelAdmitter is the admission control of one queue, the real one and the
// model's.
type modelAdmitter struct {
	real    *admission.Admitter
	asks    []admission.AdmitRequest // the latest requests to the real one
	rules   *rules
	classes map[string]*bucket
	keys    map[string]*bucket
}

func newModelAdmitter(r *rules) *modelAdmitter {
	return &modelAdmitter{real: admission.NewAdmitter(r.real), rules: r, classes: map[string]*bucket{}, keys: map[string]*bucket{}}
}

// replace changes the policy. A rate that stays the same stays used up.
func (d *modelAdmitter) replace(r *rules) {
	d.real.Replace(r.real)
	d.rules = r
	for name, b := range d.classes {
		if !slices.ContainsFunc(r.classes, func(c class) bool { return c.name == name && c.rate == b.rate }) {
			delete(d.classes, name)
		}
	}
	for key, b := range d.keys {
		if d.keyRate(key) != b.rate {
			delete(d.keys, key)
		}
	}
}

func (d *modelAdmitter) keyRate(key string) int {
	if s, ok := d.rules.shares[key]; ok && d.rules.fair {
		return s.rate
	}
	return d.rules.shares["*"].rate
}

// bucket lets messages in at a rate. It counts in whole billionths of a message.
type bucket struct {
	rate   int
	tokens int64
	at     time.Time
}

const message1 = int64(time.Second) // a message, in billionths

func newBucket(rate int, now time.Time) *bucket {
	return &bucket{rate: rate, tokens: int64(rate) * message1, at: now}
}

func (b *bucket) refill(now time.Time) {
	b.tokens = min(b.tokens+int64(now.Sub(b.at))*int64(b.rate), int64(b.rate)*message1)
	b.at = now
}

// admitCheck is the check of a batch.
type admitCheck struct {
	wants map[*bucket]int64
	evict []*modelMessage
	gone  map[*modelMessage]bool
	bytes bool // some limit is of bytes
}

// decide returns what must happen to a batch: it is rejected, or admitted after
// some messages are evicted.
func (d *modelAdmitter) decide(now time.Time, q *modelQueue, as []*modelMessage) (a admitCheck, refused bool) {
	a = admitCheck{wants: map[*bucket]int64{}, gone: map[*modelMessage]bool{}, bytes: d.rules.inBytes()}
	for _, m := range as {
		if c := d.rules.class(m.class); c != nil && c.rate > 0 {
			a.want(now, d.classes, c.name, c.rate)
		}
		if rate := d.keyRate(m.key); d.rules.fair && rate > 0 {
			a.want(now, d.keys, m.key, rate)
		}
	}
	for b, n := range a.wants {
		if min(n, int64(b.rate))*message1 > b.tokens {
			return a, true
		}
	}
	var waiting []*modelMessage
	for _, m := range q.messages {
		if m.state == queue.Ready {
			waiting = append(waiting, m)
		}
	}
	for i, m := range as {
		if !d.fits(&a, waiting, as[:i+1], m) {
			return a, true
		}
	}
	return a, false
}

func (a *admitCheck) want(now time.Time, in map[string]*bucket, name string, rate int) {
	if in[name] == nil {
		in[name] = newBucket(rate, now)
	}
	in[name].refill(now)
	a.wants[in[name]]++
}

// fits finds space for the last message of a batch whose other messages are
// admitted already.
func (d *modelAdmitter) fits(a *admitCheck, waiting, batch []*modelMessage, m *modelMessage) bool {
	c := d.rules.class(m.class)
	all := func(keep func(*modelMessage) bool) (ms []*modelMessage) {
		for _, o := range slices.Concat(waiting, batch) {
			if keep(o) && !a.gone[o] {
				ms = append(ms, o)
			}
		}
		return ms
	}
	ofClass := func(o *modelMessage) bool { return o.class == m.class }
	if c != nil {
		if excess := c.limit.over(all(ofClass)); excess > 0 && !(c.evict && a.evictSome(waiting, m.class, c.limit, excess)) {
			return false
		}
	}
	mark := d.rules.mark
	total := func() int64 { return mark.over(all(func(*modelMessage) bool { return true })) }
	if total() <= 0 {
		return true
	}
	// Only messages at the same level or above count against a message. Lower ones
	// are evicted for it.
	own := mark.over(all(func(o *modelMessage) bool { return o.level >= m.level }))
	if own > 0 && !(c != nil && c.evict && a.evictSome(waiting, m.class, mark, own)) {
		return false
	}
	for level := range int(m.level) {
		for n, lower := range d.rules.classes {
			if excess := total(); excess > 0 && lower.evict && lower.level == level {
				a.evictMost(waiting, queue.Class(n+1), mark, excess)
			}
		}
	}
	return true
}

// evictSome evicts the oldest of a class until there is enough space; if there
// is not enough to evict, it evicts nothing.
func (a *admitCheck) evictSome(waiting []*modelMessage, c queue.Class, unit depth, excess int64) bool {
	var of []*modelMessage
	for _, m := range waiting {
		if m.class == c && !a.gone[m] {
			of = append(of, m)
		}
	}
	if unit.size(of) < excess {
		return false
	}
	a.evictMost(waiting, c, unit, excess)
	return true
}

// evictMost evicts the oldest of a class until there is enough space or none is
// left.
func (a *admitCheck) evictMost(waiting []*modelMessage, c queue.Class, unit depth, excess int64) {
	for _, m := range waiting {
		if excess <= 0 {
			return
		}
		if m.class == c && !a.gone[m] {
			a.gone[m] = true
			a.evict = append(a.evict, m)
			excess -= unit.size([]*modelMessage{m})
		}
	}
}

// use takes what a batch that was stored has used of the rates.
func (a *admitCheck) use() {
	for b, n := range a.wants {
		b.tokens -= n * message1
	}
}
