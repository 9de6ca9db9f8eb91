// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// hand records that a message is delivered: its key is started.
func (m *model) hand(x *modelMessage) {
	if x.a.Key != "" && m.cfg.Order.FinishesFirst() && !slices.Contains(m.started, x.a.Key) {
		m.started = append(m.started, x.a.Key)
	}
}

// forget drops the keys of which nothing is left.
func (m *model) forget() {
	m.started = slices.DeleteFunc(m.started, func(key string) bool {
		return !slices.ContainsFunc(m.messages, func(x *modelMessage) bool { return x.a.Key == key })
	})
}

// within compares two messages of a level, straight from the definition.
func (m *model) within(a, b *modelMessage) int {
	oldest := cmp.Or(a.since.Compare(b.since), cmp.Compare(a.seq, b.seq))
	switch o := m.cfg.Order; {
	case o.FinishesFirst():
		return cmp.Or(cmp.Compare(m.turn(a), m.turn(b)), oldest)
	case o.LevelOrder == Lifo && !o.Fair && (o.Discipline == Weighted || o.Discipline == Strict && o.Saturation.Oldest == 0):
		return -oldest
	}
	return oldest
}

// turn is the place of the key of a message among those started.
func (m *model) turn(x *modelMessage) int {
	if i := slices.Index(m.started, x.a.Key); i >= 0 {
		return i
	}
	return math.MaxInt
}

// firsts returns the message that goes first inside a level, or inside each if they
// have shares.
func (m *model) firsts(now time.Time, l Level, may func(*modelMessage) bool) (of []*modelMessage) {
	byLevel := map[Level][]*modelMessage{}
	for _, x := range m.messages {
		if x.state == Ready && !m.expired(x, now) && may(x) && (x.a.Level == l || m.cfg.Order.Discipline == Weighted) {
			byLevel[x.a.Level] = append(byLevel[x.a.Level], x)
		}
	}
	for _, xs := range byLevel {
		of = append(of, slices.MinFunc(xs, m.within))
	}
	return of
}
