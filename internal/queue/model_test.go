// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"slices"
	"time"
)

// modelMessage is a message as simply as it can be written down.
type modelMessage struct {
	seq       SeqNo
	a         Arrival
	enqueued  time.Time
	since     time.Time // from when its age counts
	expires   time.Time // zero is never
	state     State
	deferred  bool // locked, was deferred
	failures  uint32
	token     Token
	until     time.Time
	durable   bool      // locked, and a restart does not end that
	retryAt   time.Time // of one that is Retrying
	saved     Ref
	notBefore time.Time
	ttl       time.Duration
}

// model is a queue as a slice that is searched from end to end.
type model struct {
	cfg      Config
	last     SeqNo
	messages []*modelMessage
	seen     map[string]time.Time
	holders  map[string]SessionLock
	ends     map[string]time.Time // of the session locks
	dead     []SeqNo
	shares   *modelShares // while it is saturated
	started  []string     // keys, in the order in which they were
	next     *Order       // configured, and not in force yet
	void     bool         // started is forgotten when next is in force
	short    bool         // the disk has space for settlements only
}

func newModel(cfg Config) *model {
	return &model{cfg: cfg, seen: map[string]time.Time{}, holders: map[string]SessionLock{}, ends: map[string]time.Time{}}
}

// configure changes the settings, but not yet the order.
func (m *model) configure(cfg Config) {
	order, next := m.cfg.Order, cfg.Order
	configured := &order
	if m.next != nil {
		configured = m.next
	}
	m.cfg, m.cfg.Order = cfg, order
	if !next.Equal(configured) {
		m.next, m.void = &next, m.void || order.FinishesFirst() && !next.FinishesFirst()
	}
}

// reorder puts the order in force that was configured.
func (m *model) reorder() {
	if m.next == nil {
		return
	}
	if m.void || !m.next.FinishesFirst() {
		m.started = nil
	}
	m.cfg.Order, m.next, m.void, m.shares = *m.next, nil, false, nil
}

func (m *model) find(seq SeqNo) *modelMessage {
	for _, x := range m.messages {
		if x.seq == seq {
			return x
		}
	}
	return nil
}

func (m *model) remove(seq SeqNo) {
	m.messages = slices.DeleteFunc(m.messages, func(x *modelMessage) bool { return x.seq == seq })
}

// insert puts a message back that was removed.
func (m *model) insert(x *modelMessage) {
	i, _ := slices.BinarySearchFunc(m.messages, x.seq, func(y *modelMessage, seq SeqNo) int { return cmp.Compare(y.seq, seq) })
	m.messages = slices.Insert(m.messages, i, x)
}

func (m *model) enqueue(now time.Time, as []Arrival) []SeqNo {
	seqs := make([]SeqNo, len(as))
	for i, a := range as {
		if at, ok := m.seen[a.MessageID]; ok && m.cfg.DuplicateWindow > 0 && now.Before(at.Add(m.cfg.DuplicateWindow)) {
			continue
		}
		if a.MessageID != "" {
			m.seen[a.MessageID] = now
		}
		m.last++
		seqs[i] = m.last
		x := &modelMessage{seq: m.last, a: a, enqueued: now, state: Ready, failures: a.Failures, ttl: a.TTL}
		if m.cfg.TTL > 0 && (x.ttl == 0 || m.cfg.TTL < x.ttl) {
			x.ttl = m.cfg.TTL
		}
		if !a.At.IsZero() && a.At.Before(now) {
			x.enqueued = a.At
		}
		x.since = x.enqueued
		if a.NotBefore.After(now) {
			x.state, x.notBefore = Scheduled, a.NotBefore
		} else if x.ttl > 0 {
			x.expires = now.Add(x.ttl)
		}
		if x.state == Ready && !a.OrderTime.IsZero() && a.OrderTime.Before(x.since) {
			x.since = a.OrderTime
		}
		m.messages = append(m.messages, x)
	}
	return seqs
}

// tick does what is due at now, in the order that the queue promises.
func (m *model) tick(now time.Time) {
	end := (*model).fail
	if m.short {
		end = (*model).rest
	}
	for id, at := range m.ends {
		if !at.After(now) {
			m.freeSession(id, end)
		}
	}
	for _, x := range slices.Clone(m.messages) {
		if x.state == Locked && !m.cfg.Sessions && !x.until.After(now) {
			end(m, x)
		}
	}
	for _, x := range m.messages {
		if x.state == Retrying && !x.retryAt.After(now) {
			x.state = Ready
		}
	}
	var due []*modelMessage
	for _, x := range m.messages {
		if x.state == Scheduled && !x.notBefore.After(now) {
			due = append(due, x)
		}
	}
	slices.SortFunc(due, func(a, b *modelMessage) int {
		return cmp.Or(a.notBefore.Compare(b.notBefore), cmp.Compare(a.seq, b.seq))
	})
	for _, x := range due {
		m.remove(x.seq)
		m.last++
		x.seq, x.enqueued, x.since, x.state = m.last, now, now, Ready
		if x.ttl > 0 {
			x.expires = now.Add(x.ttl)
		}
		m.messages = append(m.messages, x)
	}
	for _, x := range slices.Clone(m.messages) {
		if m.expired(x, now) {
			m.expire(x)
		}
	}
}

func (m *model) expired(x *modelMessage, now time.Time) bool {
	return x.state == Ready && m.outlived(x, now)
}

func (m *model) outlived(x *modelMessage, now time.Time) bool {
	return !x.expires.IsZero() && !x.expires.After(now)
}

func (m *model) expire(x *modelMessage) {
	if m.cfg.DeadLetterExpired {
		m.dead = append(m.dead, x.seq)
	}
	m.remove(x.seq)
}

func (m *model) freeSession(id string, end func(*model, *modelMessage)) {
	delete(m.holders, id)
	delete(m.ends, id)
	for _, x := range slices.Clone(m.messages) {
		if x.state == Locked && x.a.Session == id {
			end(m, x)
		}
	}
}

// waits reports whether the session of a message waits for a retry.
func (m *model) waits(session string) bool {
	return m.cfg.Sessions && slices.ContainsFunc(m.messages, func(y *modelMessage) bool {
		return y.state == Retrying && y.a.Session == session
	})
}

// retry is fail of a message that comes again at a time.
func (m *model) retry(x *modelMessage, at time.Time, now time.Time) {
	m.fail(x)
	if !x.expires.IsZero() && x.expires.Before(at) {
		at = x.expires
	}
	if x.state == Ready && m.find(x.seq) == x && at.After(now) {
		x.state, x.retryAt = Retrying, at
	}
}

func (m *model) rest(x *modelMessage) {
	x.state, x.durable = Ready, false
	if x.deferred {
		x.state, x.deferred = Deferred, false
	}
}

func (m *model) fail(x *modelMessage) {
	x.failures++
	if m.cfg.MaxFailures > 0 && x.failures >= m.cfg.MaxFailures {
		m.dead = append(m.dead, x.seq)
		m.remove(x.seq)
		return
	}
	m.rest(x)
}

// best returns the ready message that goes first by before.
func (m *model) best(now time.Time, keep func(*modelMessage) bool) *modelMessage {
	may := func(x *modelMessage) bool { return x.state == Ready && !m.expired(x, now) && keep(x) }
	if m.cfg.Order.Discipline == Deadline {
		may = m.servedByDeadline(now, may)
	}
	var best *modelMessage
	for _, x := range m.messages {
		if may(x) && (best == nil || m.before(x, best, now)) {
			best = x
		}
	}
	return best
}

// servedByDeadline narrows down who may be next, straight from the definition. A level
// with a late message is served by its level: after those above it that have a deadline,
// and before all below.
func (m *model) servedByDeadline(now time.Time, may func(*modelMessage) bool) func(*modelMessage) bool {
	late, any, above := Level(0), false, false
	for _, x := range m.messages {
		if may(x) && now.After(m.deadline(x)) {
			late, any = max(late, x.a.Level), true
		}
	}
	if !any {
		return may
	}
	timely := func(x *modelMessage) bool { return may(x) && x.a.Level > late && m.hasDeadline(x) }
	for _, x := range m.messages {
		above = above || timely(x)
	}
	if above {
		return timely
	}
	return func(x *modelMessage) bool { return may(x) && x.a.Level == late }
}

// before is the discipline, straight from its definition.
func (m *model) before(a, b *modelMessage, now time.Time) bool {
	oldest := cmp.Or(a.since.Compare(b.since), cmp.Compare(a.seq, b.seq))
	switch o := m.cfg.Order; o.Discipline {
	case Aging:
		return cmp.Or(cmp.Compare(m.aged(b, now), m.aged(a, now)), oldest) < 0
	case Deadline:
		return cmp.Or(m.deadline(a).Compare(m.deadline(b)), cmp.Compare(b.a.Level, a.a.Level), oldest) < 0
	}
	return cmp.Or(cmp.Compare(b.a.Level, a.a.Level), oldest) < 0
}

func (m *model) aged(x *modelMessage, now time.Time) int {
	o, l := m.cfg.Order, int(x.a.Level)
	if o.AgingInterval == 0 || l >= int(o.AgingMaxLevel) {
		return l
	}
	return min(l+int(now.Sub(x.since)/o.AgingInterval), int(o.AgingMaxLevel))
}

func (m *model) hasDeadline(x *modelMessage) bool {
	o := m.cfg.Order.Objective
	return int(x.a.Level) < len(o) && o[x.a.Level] > 0
}

func (m *model) deadline(x *modelMessage) time.Time {
	if m.hasDeadline(x) {
		return x.since.Add(m.cfg.Order.Objective[x.a.Level])
	}
	return time.Unix(1<<40, 0)
}

// eligible reports whether the fair key of a message is below its cap.
func (m *model) eligible(x *modelMessage) bool {
	o := m.cfg.Order
	return !o.Fair || o.DefaultShare.Cap == 0 || m.inFlight(x.a.Key) < int(o.DefaultShare.Cap)
}

func (m *model) inFlight(key string) (n int) {
	for _, x := range m.messages {
		if x.state == Locked && x.a.Key == key {
			n++
		}
	}
	return n
}

// choices returns the messages that may be delivered next to a receiver of a range,
// of those that keep accepts: the level is that of the best one, unless levels have shares; inside
// it, keys take turns.
func (m *model) choices(now time.Time, r levelRange, keep func(*modelMessage) bool) (of []*modelMessage) {
	may := func(x *modelMessage) bool { return r.has(x.a.Level) && keep(x) && m.eligible(x) }
	if m.judge(now); m.shares != nil {
		l, _ := m.shareOf(now, r)
		inRange := may
		may = func(x *modelMessage) bool { return x.a.Level == l && inRange(x) }
	}
	best := m.best(now, may)
	if best == nil {
		return nil
	}
	if o := m.cfg.Order; o.FinishesFirst() || o.LevelOrder == Lifo && !o.Fair {
		return m.firsts(now, best.a.Level, may)
	}
	if !m.cfg.Order.Fair && m.cfg.Order.Discipline != Weighted {
		return []*modelMessage{best}
	}
	least := make(map[Level]int)
	for _, x := range m.messages {
		if x.state != Ready || m.expired(x, now) || !may(x) {
			continue
		}
		if x.a.Level != best.a.Level && m.cfg.Order.Discipline != Weighted {
			continue
		}
		first := m.best(now, func(y *modelMessage) bool {
			return may(y) && y.a.Level == x.a.Level && (!m.cfg.Order.Fair || y.a.Key == x.a.Key)
		})
		if first == x {
			of = append(of, x)
			if n, ok := least[x.a.Level]; !ok || m.inFlight(x.a.Key) < n {
				least[x.a.Level] = m.inFlight(x.a.Key)
			}
		}
	}
	if m.cfg.Order.Fair { // the least loaded only
		of = slices.DeleteFunc(of, func(x *modelMessage) bool { return m.inFlight(x.a.Key) > least[x.a.Level] })
	}
	return of
}

// nextSessions returns the free sessions that may be next for w: the messages
// that rank them.
func (m *model) nextSessions(now time.Time, w TakeOptions) []*modelMessage {
	return m.choices(now, levelRange{w.lowest(), w.highest()}, func(x *modelMessage) bool {
		return m.ends[x.a.Session].IsZero() && !m.waits(x.a.Session) && m.oldest(x)
	})
}

// oldest reports whether no message of the session and level of x is older.
func (m *model) oldest(x *modelMessage) bool {
	return !slices.ContainsFunc(m.messages, func(y *modelMessage) bool {
		return y.state == Ready && y.a.Session == x.a.Session && y.a.Level == x.a.Level &&
			cmp.Or(y.since.Compare(x.since), cmp.Compare(y.seq, x.seq)) < 0
	})
}

// first returns the ready message of a session with the lowest number.
func (m *model) first(session string) *modelMessage {
	var first *modelMessage
	if m.waits(session) {
		return nil
	}
	for _, x := range m.messages {
		if x.state == Ready && x.a.Session == session && (first == nil || x.seq < first.seq) {
			first = x
		}
	}
	return first
}

func (m *model) counts() (c Counts) {
	for _, x := range m.messages {
		c.Bytes += int64(x.a.Body.Size)
		switch x.state {
		case Ready:
			c.Ready++
		case Locked:
			c.Locked++
		case Deferred:
			c.Deferred++
		case Scheduled:
			c.Scheduled++
		case Retrying:
			c.Retrying++
		}
	}
	return c
}
