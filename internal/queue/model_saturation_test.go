// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// modelShares are the shares of the levels while a model is saturated: an account
// for each range of levels that receivers have asked for.
type modelShares struct {
	accounts map[levelRange]*modelAccount
	by       levelRange // of the last choice
}

type levelRange struct{ lo, hi Level }

type modelAccount struct {
	time map[Level]int64
	now  int64
}

var allLevels = levelRange{0, 255}

func (r levelRange) has(l Level) bool { return l >= r.lo && l <= r.hi }

func newModelShares() *modelShares {
	return &modelShares{accounts: map[levelRange]*modelAccount{allLevels: {time: map[Level]int64{}}}, by: allLevels}
}

// at returns the time of a level. It does not save up while it is empty.
func (a *modelAccount) at(l Level) int64 { return max(a.time[l], a.now) }

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
		m.shares = newModelShares()
	}
}

// offered reports whether a ready message, or its session by it, may be delivered.
func (m *model) offered(x *modelMessage) bool {
	return m.eligible(x) && (!m.cfg.Sessions || m.ends[x.a.Session].IsZero() && !m.waits(x.a.Session) && m.oldest(x))
}

// open returns the levels that have messages which may be delivered.
func (m *model) open(now time.Time) map[Level]bool {
	open := map[Level]bool{}
	for _, x := range m.messages {
		if x.state == Ready && !m.expired(x, now) && m.offered(x) {
			open[x.a.Level] = true
		}
	}
	return open
}

// shareOf returns the level whose turn it is for receivers of a range.
func (m *model) shareOf(now time.Time, of levelRange) (best Level, found bool) {
	if m.shares.accounts[of] == nil {
		m.shares.accounts[of] = &modelAccount{time: map[Level]int64{}}
	}
	m.shares.by = of
	a := m.shares.accounts[of]
	for l := range m.open(now) {
		if of.has(l) && (!found || a.at(l) < a.at(best) || a.at(l) == a.at(best) && l > best) {
			best, found = l, true
		}
	}
	return best, found
}

// served says that a message of a level was delivered. In the account that chose it
// that is a delivery from its time on, in others at most one from the present on.
func (m *model) served(now time.Time, l Level) {
	if m.shares == nil {
		return
	}
	cost := int64(int64(1 << 40))
	if w := m.cfg.Order.Weight; int(l) < len(w) && w[l] > 0 {
		cost /= int64(w[l])
	}
	for of, a := range m.shares.accounts {
		if !of.has(l) {
			continue
		}
		least := a.at(l)
		if of != m.shares.by {
			for o := range m.open(now) {
				if of.has(o) {
					least = min(least, a.at(o))
				}
			}
		}
		a.now = least
		a.time[l] = max(a.time[l], least+cost)
	}
}
