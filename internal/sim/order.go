// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// The disciplines, straight from their definitions.

// candidates returns the ready messages among which the next one is chosen: all
// of them, or, with sessions, those by which the free sessions are ranked.
func (q *modelQueue) candidates(now time.Time) (ms []*modelMessage) {
	if q.cfg.Sessions {
		return q.freeSessions(now)
	}
	for _, m := range q.messages {
		if m.state == queue.Ready && !m.expired(now) {
			ms = append(ms, m)
		}
	}
	return ms
}

// freeSessions returns the messages by which free sessions are ranked: of each
// session the oldest at each level.
func (q *modelQueue) freeSessions(now time.Time) (ms []*modelMessage) {
	for _, m := range q.messages {
		if m.state != queue.Ready || m.expired(now) || q.held[m.session].nonce != 0 || q.waits(m.session) {
			continue
		}
		i := slices.IndexFunc(ms, func(o *modelMessage) bool { return o.session == m.session && o.level == m.level })
		if i < 0 {
			ms = append(ms, m)
		} else if m.since.Before(ms[i].since) {
			ms[i] = m
		}
	}
	return ms
}

// next returns the message that goes first of some.
func (q *modelQueue) next(now time.Time, of []*modelMessage) (best *modelMessage) {
	if q.order.Discipline == queue.Deadline {
		of = q.timely(now, of)
	}
	for _, m := range of {
		if best == nil || q.before(now, m, best) {
			best = m
		}
	}
	return best
}

// timely returns the messages among which deadlines decide. A level with a late message
// is served by its level: the levels below it wait, and those above it go first.
func (q *modelQueue) timely(now time.Time, of []*modelMessage) []*modelMessage {
	late := -1
	for _, m := range of {
		if q.late(now, m) {
			late = max(late, int(m.level))
		}
	}
	from := func(level int) []*modelMessage {
		return slices.DeleteFunc(slices.Clone(of), func(m *modelMessage) bool {
			return int(m.level) < level || q.due(m) == never
		})
	}
	if late < 0 {
		return of
	}
	if above := from(late + 1); len(above) > 0 {
		return above
	}
	return from(late)
}

// precedes reports whether a ready message would be delivered before a locked one, if
// that were released and nothing else arrived.
func (q *modelQueue) precedes(now time.Time, ready, held *modelMessage) bool {
	of := []*modelMessage{held}
	for _, m := range q.candidates(now) {
		if q.eligible(now, m.key) {
			of = append(of, m)
		}
	}
	for {
		switch best := q.next(now, of); best {
		case ready, held, nil:
			return best == ready
		default:
			of = slices.DeleteFunc(of, func(m *modelMessage) bool { return m == best })
		}
	}
}

// before is the discipline as far as it is one of messages.
func (q *modelQueue) before(now time.Time, a, b *modelMessage) bool {
	level, oldest := cmp.Compare(b.level, a.level), ages(a, b)
	switch q.order.Discipline {
	case queue.Aging:
		return cmp.Or(cmp.Compare(q.aged(now, b), q.aged(now, a)), oldest) < 0
	case queue.Deadline:
		return cmp.Or(cmp.Compare(q.due(a), q.due(b)), level, oldest) < 0
	}
	return cmp.Or(level, oldest) < 0
}

// aged is the level to which waiting has lifted a message.
func (q *modelQueue) aged(now time.Time, m *modelMessage) int {
	l, o := int(m.level), q.order
	if l >= int(o.AgingMaxLevel) {
		return l
	}
	return min(l+int(now.Sub(m.since)/o.AgingInterval), int(o.AgingMaxLevel))
}

// due is when a message must have started; what has no objective never must.
func (q *modelQueue) due(m *modelMessage) int64 {
	if o := q.order.Objective; int(m.level) < len(o) && o[m.level] > 0 {
		return m.since.Add(o[m.level]).UnixNano()
	}
	return never
}

const never = 1<<63 - 1

// late reports whether a message can no longer start in time.
func (q *modelQueue) late(now time.Time, m *modelMessage) bool { return now.UnixNano() > q.due(m) }

// choices returns the messages that may be delivered next, of those that keep
// accepts. The level is that of the best message, unless levels have shares;
// inside it, the fair keys with the fewest in flight are served round robin, or
// those that were started are served first; of a key, the oldest is first.
func (q *modelQueue) choices(now time.Time, keep func(*modelMessage) bool) (of []*modelMessage) {
	var may []*modelMessage
	loads, closed := map[string]uint32{}, map[string]bool{}
	for _, m := range q.candidates(now) {
		if _, known := loads[m.key]; !known {
			loads[m.key], closed[m.key] = q.load(m.key), !q.eligible(now, m.key)
		}
		if !keep(m) || closed[m.key] {
			continue
		}
		may = append(may, m)
	}
	best := q.next(now, may)
	// What has just expired may still lift a level that its keys share, or be late.
	anyLevel := q.mayShare(now) || (q.order.Fair || q.order.Discipline == queue.Deadline) && q.blurred(now)
	first := map[lineName]*modelMessage{}
	for _, m := range may {
		if m.level != best.level && !anyLevel {
			continue
		}
		if was := first[q.line(m)]; was == nil || q.inside(m, was) < 0 {
			first[q.line(m)] = m
		}
	}
	for _, m := range first {
		if q.finishes() || !slices.ContainsFunc(may, func(o *modelMessage) bool {
			return o.level == m.level && loads[o.key] < loads[m.key]
		}) {
			of = append(of, m)
		}
	}
	return of
}

// lineName names the messages that go one after the other.
type lineName struct {
	level queue.Level
	key   string // empty unless keys are served round robin
}

func (q *modelQueue) line(m *modelMessage) lineName {
	if !q.order.Fair || q.finishes() {
		return lineName{level: m.level}
	}
	return lineName{m.level, m.key}
}

// blurred reports whether something has expired that may or may not have been
// cleared away.
func (q *modelQueue) blurred(now time.Time) bool {
	return slices.ContainsFunc(q.messages, func(m *modelMessage) bool { return m.expired(now) })
}

// share is what a fair key may have.
func (q *modelQueue) share(key string) queue.Share {
	for _, s := range q.order.Shares {
		if s.Key == key {
			return s
		}
	}
	return q.order.DefaultShare
}

func (q *modelQueue) inFlight(key string) (n uint32) {
	for _, m := range q.messages {
		if m.state == queue.Locked && m.key == key {
			n++
		}
	}
	return n
}

// load is how much of its share a key has in flight.
func (q *modelQueue) load(key string) uint32 {
	if !q.order.Fair {
		return 0
	}
	return q.inFlight(key) / max(q.share(key).Weight, 1)
}

// eligible reports whether a key is below its cap and its pace.
func (q *modelQueue) eligible(now time.Time, key string) bool {
	s := q.share(key)
	switch {
	case !q.order.Fair:
		return true
	case s.Cap > 0 && q.inFlight(key) >= s.Cap:
		return false
	case s.Rate > 0:
		every := time.Duration(float64(time.Second) / s.Rate)
		return !q.booked[key].Add(-every * time.Duration(max(s.Burst, 1)-1)).After(now)
	}
	return true
}

// book uses up the pace of a key by one message.
func (q *modelQueue) book(now time.Time, key string) {
	if s := q.share(key); q.order.Fair && s.Rate > 0 {
		q.booked[key] = later(q.booked[key], now).Add(time.Duration(float64(time.Second) / s.Rate))
	}
}

// paced reports whether some key has a pace.
func (q *modelQueue) paced() bool {
	o := q.order
	return o.Fair && (o.DefaultShare.Rate > 0 || slices.ContainsFunc(o.Shares, func(s queue.Share) bool { return s.Rate > 0 }))
}

// clear reports whether the ready messages and their levels are certain:
// nothing has just expired, and everything is classified by the policy.
func (q *modelQueue) clear(now time.Time, r *rules) bool {
	return !slices.ContainsFunc(q.messages, func(m *modelMessage) bool {
		return m.state == queue.Ready && (m.expired(now) ||
			queue.Classification{Level: m.level, Class: m.class, Key: m.key} != r.classOf(factsOf(m.body)))
	})
}

// why describes what was expected when a wrong message was delivered.
func (q *modelQueue) why(now time.Time, m *modelMessage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "order %+v, level %d, key %q, by %+v, started %q\n", q.order, m.level, m.key, q.possibleModes(now), q.started)
	for _, o := range q.candidates(now) {
		fmt.Fprintf(&b, "message %d, level %d, key %q, waits %v, load %d, eligible %t\n",
			o.seq, o.level, o.key, now.Sub(o.since), q.load(o.key), q.eligible(now, o.key))
	}
	return b.String()
}
