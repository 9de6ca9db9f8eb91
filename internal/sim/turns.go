// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// rounds records which keys and levels were served, to check that turns and
// shares are fair. It is only a bound: the queue decides which of several keys
// or levels is next.
type rounds struct {
	// passed counts how often one key was served while another, which had as
	// little in flight, waited in the same level.
	passed map[passing]uint32
	// lags compares two levels that have had messages all the time.
	lags map[[2]queue.Level]*lag
	// waits counts how often receivers of all levels got one level while another
	// waited, since that was served last.
	waits map[[2]queue.Level]int
	// ranged is set when a receiver of only some levels attaches: it is served out
	// of turn, and the bound for the shares of the others is wider.
	ranged bool
	// unjust is set when it is not known which keys were served.
	unjust bool
	// mode is how a strict queue chooses.
	mode modes
	// vague is set when it is not known which key's rate was used.
	vague bool
}

type passing struct {
	level         queue.Level
	waiting, same string
}

// lag is how much more, by its weight, one level got than another.
type lag struct{ now, least, most float64 }

func newRounds() rounds {
	return rounds{passed: map[passing]uint32{}, lags: map[[2]queue.Level]*lag{}, waits: map[[2]queue.Level]int{}, mode: onlyStrict}
}

// served records that a message is about to be delivered because it is next,
// and returns an error if that is unfair. toAny says that the receiver
// certainly accepts messages of all levels.
func (q *modelQueue) served(now time.Time, m *modelMessage, toAny bool) error {
	q.decide(now)
	q.closed(now)
	if q.turns.unjust {
		q.book(now, m.key)
		return nil
	}
	if q.order.Fair && !q.finishes() && !q.cfg.Sessions && !q.turns.ranged {
		if err := q.passes(now, m); err != nil {
			return err
		}
	}
	if q.shared() {
		for l := range q.open(now) {
			if l == m.level {
				continue
			}
			if !q.turns.ranged {
				if err := q.weigh(m.level, l); err != nil {
					return err
				}
			}
			if err := q.outwait(m.level, l, toAny); err != nil {
				return err
			}
		}
	}
	q.book(now, m.key)
	q.moved(m.key)
	return nil
}

// passes counts, for each waiting key, that m was served before it. A key that
// was there before another one, or that has had its turn, is served at most as
// often as its weight says.
func (q *modelQueue) passes(now time.Time, m *modelMessage) error {
	seen := map[string]bool{m.key: true}
	for _, o := range q.candidates(now) {
		if o.level != m.level || seen[o.key] || !q.eligible(now, o.key) || q.load(o.key) != q.load(m.key) {
			continue
		}
		seen[o.key] = true
		at := passing{m.level, o.key, m.key}
		if q.turns.passed[at]++; q.turns.passed[at] > max(q.share(m.key).Weight, 1) {
			return fmt.Errorf("key %q was served %d times at level %d while %q waited for its turn",
				m.key, q.turns.passed[at], m.level, o.key)
		}
	}
	return nil
}

// weigh counts a message of one level while another had some. The difference of
// what two levels got, each by its weight, is at most one message of each.
func (q *modelQueue) weigh(got, other queue.Level) error {
	pair, sign := [2]queue.Level{got, other}, 1.0
	if other < got {
		pair, sign = [2]queue.Level{other, got}, -1
	}
	l := q.turns.lags[pair]
	if l == nil {
		l = new(lag)
		q.turns.lags[pair] = l
	}
	l.now += sign / q.weight(got)
	l.least, l.most = min(l.least, l.now), max(l.most, l.now)
	if most := 1/q.weight(got) + 1/q.weight(other); l.most-l.least > most+1e-6 {
		return fmt.Errorf("levels %v with weights %v and %v: one got %v more than its share of the other, at most %v is just",
			pair, q.weight(pair[0]), q.weight(pair[1]), l.most-l.least, most)
	}
	return nil
}

// outwait counts a message of one level while another level had some. Apart
// from receivers of only some levels, a waiting level is passed over at most
// once more than the weights of the two say.
func (q *modelQueue) outwait(got, other queue.Level, toAny bool) error {
	for pair := range q.turns.waits {
		if pair[1] == got {
			delete(q.turns.waits, pair)
		}
	}
	if !toAny {
		return nil
	}
	pair := [2]queue.Level{got, other}
	q.turns.waits[pair]++
	if n, most := q.turns.waits[pair], int(q.weight(got)/q.weight(other)+1e-6)+1; n > most {
		return fmt.Errorf("level %d of weight %v got %d messages while level %d of weight %v waited, at most %d is just",
			got, q.weight(got), n, other, q.weight(other), most)
	}
	return nil
}

func (q *modelQueue) weight(l queue.Level) float64 {
	if w := q.order.Weight; int(l) < len(w) && w[l] > 0 {
		return float64(w[l])
	}
	return 1
}

// open returns the levels that have ready messages.
func (q *modelQueue) open(now time.Time) map[queue.Level]bool {
	open := map[queue.Level]bool{}
	for _, m := range q.candidates(now) {
		if q.eligible(now, m.key) {
			open[m.level] = true
		}
	}
	return open
}

// closed resets the counts of levels without messages: they do not accumulate
// credit.
func (q *modelQueue) closed(now time.Time) {
	if len(q.turns.lags) == 0 && len(q.turns.waits) == 0 {
		return
	}
	open := q.open(now)
	for pair := range q.turns.waits {
		if !open[pair[0]] || !open[pair[1]] {
			delete(q.turns.waits, pair)
		}
	}
	for pair := range q.turns.lags {
		if !open[pair[0]] || !open[pair[1]] {
			delete(q.turns.lags, pair)
		}
	}
}

// moved says that a key may be last in the round robin again: it was served, or
// its number in flight has changed, or it is new.
func (q *modelQueue) moved(key string) {
	for at := range q.turns.passed {
		if at.waiting == key {
			delete(q.turns.passed, at)
		}
	}
}
