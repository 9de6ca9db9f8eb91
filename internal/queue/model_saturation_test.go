// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// modelShares are the shares of the levels while a model is saturated.
type modelShares struct {
	in   map[Level]bool
	time map[Level]int64
	now  int64
}

// judge decides whether the model is saturated, straight from the definition.
func (m *model) judge(now time.Time) {
	limit, ready, oldest := m.cfg.Order.Saturation, int64(0), now
	if m.cfg.Order.Discipline != Strict {
		return
	}
	for _, x := range m.messages {
		if x.state != Ready {
			continue
		}
		ready++
		if m.offered(x) && x.since.Before(oldest) {
			oldest = x.since
		}
	}
	crowd, wait := limit.Waiting > 0 && ready >= limit.Waiting, limit.Oldest > 0 && now.Sub(oldest) >= limit.Oldest
	if m.shares != nil { // until both are at half
		crowd, wait = limit.Waiting > 0 && ready > limit.Waiting/2, limit.Oldest > 0 && now.Sub(oldest) > limit.Oldest/2
	}
	switch {
	case !crowd && !wait:
		m.shares = nil
	case m.shares == nil:
		m.shares = &modelShares{in: map[Level]bool{}, time: map[Level]int64{}}
	}
}

// offered reports whether a ready message, or its session by it, may be handed out.
func (m *model) offered(x *modelMessage) bool {
	return m.eligible(x) && (!m.cfg.Sessions || m.ends[x.a.Session].IsZero() && m.oldest(x))
}

// shareOf returns the level whose turn it is, of those with messages that may be
// handed out and that keep accepts.
func (m *model) shareOf(now time.Time, keep func(*modelMessage) bool) (best Level, found bool) {
	s, open, wanted := m.shares, map[Level]bool{}, map[Level]bool{}
	for _, x := range m.messages {
		if x.state != Ready || m.expired(x, now) || !m.offered(x) {
			continue
		}
		if open[x.a.Level] = true; !s.in[x.a.Level] { // it saved nothing up
			s.time[x.a.Level] = max(s.time[x.a.Level], s.now)
		}
		wanted[x.a.Level] = wanted[x.a.Level] || keep(x)
	}
	s.in = open
	for l := range wanted {
		if wanted[l] && (!found || s.time[l] < s.time[best] || s.time[l] == s.time[best] && l > best) {
			best, found = l, true
		}
	}
	return best, found
}

// served says that a message of a level was handed out.
func (m *model) served(l Level) {
	if s := m.shares; s != nil {
		weight := int64(1)
		if w := m.cfg.Order.Weight; int(l) < len(w) && w[l] > 0 {
			weight = int64(w[l])
		}
		s.now = s.time[l]
		s.time[l] += weightUnit / weight
	}
}
