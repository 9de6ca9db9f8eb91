// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// modelMessage is a message as simply as it can be written down.
type modelMessage struct {
	seq       queue.SeqNo
	origin    queue.SeqNo
	plain     *message.Message    // without the saved state
	body      *message.Message    // as its receiver sees it
	sum       [sha256.Size]byte   // of body
	sums      [][sha256.Size]byte // of all bodies that it ever had
	size      int                 // of the body that is stored: the reason of a dead letter is kept beside it
	saved     []byte              // state that a consumer has saved; nil is none
	savedSize int                 // of the body that has the state
	level     queue.Level
	class     queue.Class
	key       string
	session   string
	inSession bool
	enqueued  time.Time
	since     time.Time     // from when its age counts
	life      time.Duration // zero is no expiry
	notBefore time.Time     // if scheduled, or waiting for a retry
	failures  uint32
	state     queue.State
	deferred  bool // locked, and was deferred
	nonce     uint64
	until     time.Time
	durable   bool      // locked, and a crash does not end that
	restored  bool      // the lock is from an earlier process, and was not renewed since
	logged    time.Time // end of a durable lock, as far as it was certainly logged
	// changed is the version in which something about it last changed that a
	// receiver can see.
	changed int
}

func (m *modelMessage) expires() time.Time {
	if m.life == 0 {
		return time.Time{}
	}
	return m.enqueued.Add(m.life)
}

func (m *modelMessage) expired(now time.Time) bool {
	return m.state == queue.Ready && m.expirable(now)
}

// expirable reports whether it expires when it is requested: a deferred message
// expires only then.
func (m *modelMessage) expirable(now time.Time) bool {
	return (m.state == queue.Ready || m.state == queue.Deferred) && m.life > 0 && !m.expires().After(now)
}

func (m *modelMessage) setBody(b *message.Message) {
	m.plain, m.size = b, b.Size()
	m.show()
}

// show has the receiver see the saved state with the body.
func (m *modelMessage) show() {
	m.body = m.plain
	if m.saved != nil {
		m.body = edited(m.plain, []message.Change{{Name: message.PropertyState, Value: codec.Binary(m.saved)}})
	}
	m.sum = sha256.Sum256(m.body.Bytes())
	m.sums = append(slices.Clip(m.sums), m.sum) // its dead letter does not share them
}

// save keeps a state beside the body. It is stored as a message that has nothing else.
func (m *modelMessage) save(state []byte) {
	m.saved, m.savedSize = state, savedSize(state)
	m.show()
}

// savedSize returns how many bytes a saved state takes.
func savedSize(state []byte) int {
	d := message.Draft{Application: []message.Pair{{Name: message.PropertyState, Value: codec.Binary(state)}}}
	return len(d.Encode(nil))
}

// explain has the receiver see a reason with the body that is stored.
func (m *modelMessage) explain(reason, description string) {
	size := m.size
	m.setBody(edited(m.plain, []message.Change{
		{Name: "DeadLetterReason", Value: codec.String(reason)},
		{Name: "DeadLetterErrorDescription", Value: codec.String(description)},
	}))
	m.size = size
}

// resting is its state when it is not locked.
func (m *modelMessage) resting() queue.State {
	switch {
	case m.state != queue.Locked:
		return m.state
	case m.deferred:
		return queue.Deferred
	}
	return queue.Ready
}

// sighting is a message id that the duplicate window has seen.
type sighting struct {
	id        string
	at        time.Time
	version   int // that it is part of
	forgotten int // version in which the window was switched off; zero is none
}

// lockedSession is a session that a consumer has locked.
type lockedSession struct {
	nonce uint64
	until time.Time
}

// death is a message that must turn up among the dead letters.
type death struct {
	m      *modelMessage
	reason string
}

// modelQueue is a queue as a slice that is searched from end to end.
type modelQueue struct {
	cfg      queue.Config
	order    queue.Order // in effect; the one of cfg may not be applied yet
	void     bool        // started does not survive a crash, nor the change of the order
	last     queue.SeqNo
	messages []*modelMessage // by number
	seen     []sighting
	held     map[string]lockedSession
	states   map[string]string
	dead     []death
	dirty    bool              // sum is out of date
	touched  bool              // to be compared at the end of the step
	sum      [sha256.Size]byte // of what a crash must leave
	sumFrom  time.Time         // sum is right from then on
	sumUntil time.Time         // and before then; zero is without limit
	now      *time.Time        // the shardSim's
	booked   map[string]time.Time
	turns    rounds
	started  []string // keys, in the order in which they were
}

func newModelQueue(cfg queue.Config, now *time.Time) *modelQueue {
	return &modelQueue{cfg: cfg, order: cfg.Order, held: map[string]lockedSession{}, states: map[string]string{}, dirty: true, touched: true,
		now: now, booked: map[string]time.Time{}, turns: newRounds()}
}

// change says that something is about to change.
func (q *modelQueue) change() {
	q.mayBeEvaluated()
	q.dirty, q.touched = true, true
}

func (q *modelQueue) find(seq queue.SeqNo) *modelMessage {
	for _, m := range q.messages {
		if m.seq == seq {
			return m
		}
	}
	return nil
}

func (q *modelQueue) remove(m *modelMessage) {
	q.takeOut(m)
	q.forget()
}

// takeOut removes a message that may be added again at once.
func (q *modelQueue) takeOut(m *modelMessage) {
	q.change()
	q.moved(m.key)
	q.messages = slices.DeleteFunc(q.messages, func(x *modelMessage) bool { return x == m })
}

func (q *modelQueue) add(m *modelMessage) {
	q.change()
	q.last++
	m.seq = q.last
	q.joins(m)
	q.messages = append(q.messages, m)
}

// putBack inserts a message that was removed, under its number.
func (q *modelQueue) putBack(m *modelMessage) {
	q.change()
	m.state, m.nonce = m.resting(), 0
	q.joins(m)
	i, _ := slices.BinarySearchFunc(q.messages, m.seq, func(o *modelMessage, seq queue.SeqNo) int { return cmp.Compare(o.seq, seq) })
	q.messages = slices.Insert(q.messages, i, m)
}

// joins says that a message is about to be ready. If it is the only one of its
// key at its level, the key is new there.
func (q *modelQueue) joins(m *modelMessage) {
	if !slices.ContainsFunc(q.messages, func(o *modelMessage) bool {
		return o != m && o.state == queue.Ready && o.level == m.level && o.key == m.key && !o.expired(*q.now)
	}) {
		q.moved(m.key)
	}
}

// isDuplicate reports whether the window has seen the id.
func (q *modelQueue) isDuplicate(now time.Time, id string) bool {
	if q.cfg.DuplicateWindow == 0 || id == "" {
		return false
	}
	return slices.ContainsFunc(q.seen, func(s sighting) bool {
		return s.id == id && s.forgotten == 0 && now.Before(s.at.Add(q.cfg.DuplicateWindow))
	})
}

// configure changes the settings.
func (q *modelQueue) configure(cfg queue.Config, version int) {
	q.change()
	cfg.Sessions, cfg.DeadLetterQueue = q.cfg.Sessions, q.cfg.DeadLetterQueue
	q.cfg = cfg
	q.void = q.void || q.finishes() && !finishes(cfg.Order)
	for i := range q.seen {
		if cfg.DuplicateWindow == 0 && q.seen[i].forgotten == 0 {
			q.seen[i].forgotten = version
		}
	}
}

// reorder follows the real queue when it has switched to the order of its
// settings. The model cannot know when that happens.
func (q *modelQueue) reorder(real *queue.Queue) {
	if real.InForce() {
		q.goOver()
	}
}

// goOver puts the order of the settings in force.
func (q *modelQueue) goOver() {
	if same(q.order, q.cfg.Order) && !q.void {
		return
	}
	if q.void || !sameKeys(q.order, q.cfg.Order) {
		q.booked = map[string]time.Time{}
	}
	if q.void {
		q.change()
		q.started = nil
	}
	q.order, q.void = q.cfg.Order, false
	q.beginTurns()
	q.forget()
}

// beginTurns resets the record of which keys and levels were served.
func (q *modelQueue) beginTurns() {
	unjust, ranged := q.turns.unjust, q.turns.ranged
	q.turns = newRounds()
	q.turns.unjust, q.turns.ranged = unjust, ranged
}

// same reports whether two orders are the same.
func same(a, b queue.Order) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) }

// sameKeys reports whether fair keys, if there are any, have the same lines and shares
// in two orders: what a key has used up of its pace stays used up.
func sameKeys(a, b queue.Order) bool {
	aged := func(o queue.Order) bool {
		return o.Discipline == queue.Aging || o.Discipline == queue.Deadline || o.Discipline == queue.Strict && o.Saturation.Oldest > 0
	}
	return a.Fair && b.Fair && finishes(a) == finishes(b) && aged(a) == aged(b) &&
		a.DefaultShare == b.DefaultShare && slices.Equal(a.Shares, b.Shares)
}

// refusal returns the error that a batch must get.
func (q *modelQueue) refusal(now time.Time, as []queue.Arrival, bodies []*message.Message) error {
	if q.cfg.SendPaused {
		return queue.ErrSendPaused
	}
	var count, bytes int64
	inBatch := map[string]bool{}
	for i, a := range as {
		if q.cfg.Sessions && !a.InSession {
			return queue.ErrSessionRequired
		}
		if q.isDuplicate(now, a.MessageID) || q.cfg.DuplicateWindow > 0 && inBatch[a.MessageID] {
			continue
		}
		inBatch[a.MessageID] = a.MessageID != ""
		count++
		bytes += int64(bodies[i].Size())
	}
	have := q.counts()
	if count > 0 && (q.cfg.MaxCount > 0 && have.Total()+count > q.cfg.MaxCount ||
		q.cfg.MaxBytes > 0 && q.footprint(have)+count*queue.MessageOverhead+bytes > q.cfg.MaxBytes) {
		return queue.ErrFull
	}
	return nil
}

// footprint is how much of its quota the queue has used up.
func (q *modelQueue) footprint(have queue.Counts) int64 {
	type group struct {
		session   string
		inSession bool
		key       string
	}
	n := have.Bytes + have.Total()*queue.MessageOverhead
	for _, m := range q.messages {
		n += int64(m.savedSize)
	}
	groups := map[group]bool{}
	for _, m := range q.messages {
		g := group{m.session, m.inSession, m.key}
		if g != (group{}) && !groups[g] {
			groups[g] = true
			n += queue.GroupOverhead(m.session, m.key)
		}
	}
	for id, state := range q.states {
		if state != "" {
			n += int64(len(state)) + queue.GroupOverhead(id, "")
		}
	}
	return n
}

// enqueue stores a batch and returns the numbers it gets.
func (q *modelQueue) enqueue(now time.Time, version int, as []queue.Arrival, bodies []*message.Message) []queue.SeqNo {
	seqs := make([]queue.SeqNo, len(as))
	for i, a := range as {
		if q.isDuplicate(now, a.MessageID) {
			continue
		}
		if q.cfg.DuplicateWindow > 0 && a.MessageID != "" {
			q.seen = append(q.seen, sighting{id: a.MessageID, at: now, version: version})
		}
		m := &modelMessage{
			origin: a.Origin, level: a.Level, class: a.Class, key: a.Key, session: a.Session, inSession: a.InSession,
			enqueued: now, since: now, failures: a.Failures, changed: version,
		}
		m.setBody(bodies[i])
		if m.life = a.TTL; q.cfg.TTL > 0 && (m.life == 0 || q.cfg.TTL < m.life) {
			m.life = q.cfg.TTL
		}
		if a.NotBefore.After(now) {
			m.state, m.notBefore = queue.Scheduled, a.NotBefore
		} else if !a.OrderTime.IsZero() && a.OrderTime.Before(now) {
			m.since = a.OrderTime
		}
		q.add(m)
		seqs[i] = m.seq
	}
	return seqs
}

// first returns the ready message of a session that goes first: its oldest. There
// is at most one, and none while the session waits for a retry.
func (q *modelQueue) first(now time.Time, session string) []*modelMessage {
	if q.waits(session) {
		return nil
	}
	for _, m := range q.messages {
		if m.state == queue.Ready && m.session == session && !m.expired(now) {
			return []*modelMessage{m}
		}
	}
	return nil
}

// waits reports whether a session waits for the retry of one of its messages.
func (q *modelQueue) waits(session string) bool {
	return q.cfg.Sessions && slices.ContainsFunc(q.messages, func(m *modelMessage) bool {
		return m.state == queue.Retrying && m.session == session
	})
}

// holder returns the message that a token locks, or nil.
func (q *modelQueue) holder(now time.Time, t queue.Token) *modelMessage {
	m := q.find(t.Seq)
	if m == nil || m.state != queue.Locked || m.nonce != t.Nonce {
		return nil
	}
	until := m.until
	if q.cfg.Sessions {
		until = q.held[m.session].until
	}
	if !until.After(now) {
		return nil
	}
	return m
}

func (q *modelQueue) lost() error {
	if q.cfg.Sessions {
		return queue.ErrSessionLockLost
	}
	return queue.ErrLockLost
}

// rest returns a locked message to its position.
func (q *modelQueue) rest(m *modelMessage) {
	q.change()
	q.moved(m.key)
	q.joins(m)
	m.state, m.deferred, m.nonce, m.durable, m.restored = m.resting(), false, 0, false, false
}

// release is rest, of a lock whose end a receiver can see in version if it was durable.
func (q *modelQueue) release(m *modelMessage, version int) {
	if m.durable {
		m.changed = version
	}
	q.rest(m)
}

// retry is fail of a message that nobody gets before a time.
func (q *modelQueue) retry(m *modelMessage, at time.Time, version int) {
	q.fail(m, version)
	if m.life > 0 && m.expires().Before(at) {
		at = m.expires()
	}
	if q.find(m.seq) == m && m.state == queue.Ready && at.After(*q.now) {
		m.state, m.notBefore, m.changed = queue.Retrying, at, version
	}
}

// fail ends a delivery that did not succeed.
func (q *modelQueue) fail(m *modelMessage, version int) {
	if q.cfg.DeadLetterQueue {
		q.release(m, version)
		return
	}
	m.failures++
	m.changed = version
	if q.cfg.MaxFailures > 0 && m.failures >= q.cfg.MaxFailures {
		q.die(m, queue.ReasonDeliveries)
		return
	}
	q.rest(m)
}

func (q *modelQueue) die(m *modelMessage, reason string) {
	q.remove(m)
	q.dead = append(q.dead, death{m, reason})
}

// freeSession ends the lock of a session; end says what happens to its
// messages.
func (q *modelQueue) freeSession(id string, end func(*modelMessage)) {
	q.change()
	delete(q.held, id)
	for _, m := range slices.Clone(q.messages) {
		if m.state == queue.Locked && m.session == id {
			end(m)
		}
	}
}

// tick does what is due: locks expire, scheduled and waiting messages become ready. Expired
// messages are left to compare, because the queue may remove them a step later.
// A delivery has failed if fails says so: not one that did not arrive.
func (q *modelQueue) tick(now time.Time, version int, fails func(*modelMessage) bool) {
	end := func(m *modelMessage) {
		if fails(m) && !m.restored {
			q.fail(m, version)
		} else {
			q.release(m, version)
		}
	}
	for id, h := range q.held {
		if !h.until.After(now) {
			q.freeSession(id, end)
		}
	}
	var due []*modelMessage
	for _, m := range slices.Clone(q.messages) {
		if m.state == queue.Locked && !q.cfg.Sessions && !m.until.After(now) {
			end(m)
		}
		if m.state == queue.Retrying && !m.notBefore.After(now) {
			q.change()
			q.moved(m.key)
			q.joins(m)
			m.state, m.notBefore = queue.Ready, time.Time{}
		}
		if m.state == queue.Scheduled && !m.notBefore.After(now) {
			due = append(due, m)
		}
		q.touched = q.touched || m.expired(now)
	}
	slices.SortFunc(due, func(a, b *modelMessage) int {
		return cmp.Or(a.notBefore.Compare(b.notBefore), cmp.Compare(a.seq, b.seq))
	})
	for _, m := range due {
		q.takeOut(m)
		m.state, m.notBefore, m.enqueued, m.since, m.changed = queue.Ready, time.Time{}, now, now, version
		q.add(m)
	}
}

func (q *modelQueue) counts() (c queue.Counts) {
	for _, m := range q.messages {
		c.Bytes += int64(m.size)
		switch m.state {
		case queue.Ready:
			c.Ready++
		case queue.Locked:
			c.Locked++
		case queue.Deferred:
			c.Deferred++
		case queue.Scheduled:
			c.Scheduled++
		case queue.Retrying:
			c.Retrying++
		}
	}
	return c
}
