// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"slices"
	"time"
)

// Settings do not change while a machine is used.
type Settings struct {
	// Preempt lets messages take the place of running tasks that rank below them.
	Preempt bool
	// Cancel ends a preempted task instead of suspending it.
	Cancel bool
	// MinRun is how long a task runs before it can be preempted.
	MinRun time.Duration
	// Budget is how often a message can be preempted; negative: without limit.
	Budget int
	// Reachable reports whether the broker can be asked for messages above a rank.
	Reachable func(Rank) bool
}

// Message is one that the broker delivered.
type Message struct {
	ID        ID
	Rank      Rank
	Preempted int // how often it was, in earlier runs
}

// Counts is how many tasks are in which state.
type Counts struct {
	Running  int // have a slot
	Yielding int // still run, although their slot is taken
	Parked   int
}

// refusedPause is how long no urgent message is asked for after one came that does not
// rank above the bound. Without it, the same message would come again at once.
const refusedPause = time.Second

type state uint8

const (
	running state = iota
	yielding
	parked
	leaving
)

type task struct {
	Message
	state state
	slot  bool // occupies one
	fixed bool // cannot be suspended
	turn  uint32
	ran   time.Duration // before since
	since time.Time     // runs since then, unless parked
	asked time.Time     // when it was last asked to wait
}

// work returns how long the task has run.
func (t *task) work(now time.Time) time.Duration {
	if t.state == parked {
		return t.ran
	}
	return t.ran + now.Sub(t.since)
}

// request is what is in flight on a channel.
type request struct {
	inFlight bool
	stopping bool
	overdue  bool
	n        int
	bound    Rank
}

// Machine is the state of the slots of one pool.
type Machine struct {
	settings Settings
	slots    int
	tasks    []*task // in the order of their start
	requests [Channels]request

	paused, holding, stopping bool
	overdue                   int // messages to ask for once although the machine holds

	urgentAfter time.Time // no urgent request before
	wake        time.Time // when time alone changes something; zero: never
	out         []Action
}

// New returns a machine without tasks. It asks for nothing until its first event.
func New(s Settings, slots int) *Machine {
	return &Machine{settings: s, slots: slots}
}

// Wake returns when Tick is due; zero means that it is not.
func (m *Machine) Wake() time.Time { return m.wake }

// Counts returns how many tasks there are.
func (m *Machine) Counts() Counts {
	var c Counts
	for _, t := range m.tasks {
		switch {
		case t.slot:
			c.Running++
		case t.state == parked:
			c.Parked++
		default:
			c.Yielding++
		}
	}
	return c
}

// Idle reports whether there is no task and no request.
func (m *Machine) Idle() bool {
	return len(m.tasks) == 0 && !slices.ContainsFunc(m.requests[:], func(r request) bool { return r.inFlight })
}

// Tick says that time has passed.
func (m *Machine) Tick(now time.Time) []Action { return m.plan(now) }

// Resize sets the number of slots. Tasks above it run to their end.
func (m *Machine) Resize(now time.Time, slots int) []Action {
	m.slots = slots
	return m.plan(now)
}

// Pause stops new messages and suspends the running tasks. After Stop it does nothing:
// tasks have to end then.
func (m *Machine) Pause(now time.Time) []Action {
	m.paused = !m.stopping
	return m.plan(now)
}

// Unpause undoes Pause.
func (m *Machine) Unpause(now time.Time) []Action {
	m.paused = false
	return m.plan(now)
}

// Hold stops new messages, but for those that Overdue allows. Tasks go on.
func (m *Machine) Hold(now time.Time) []Action {
	m.holding, m.overdue = true, 0
	return m.plan(now)
}

// Unhold undoes Hold.
func (m *Machine) Unhold(now time.Time) []Action {
	m.holding = false
	return m.plan(now)
}

// Overdue says how many messages are too old to wait until the machine holds no more. One
// request is made for them, as soon as a slot is free.
func (m *Machine) Overdue(now time.Time, n int) []Action {
	m.overdue = n
	return m.plan(now)
}

// Stop stops new messages permanently, and lets suspended tasks go on as slots get
// free, so that they can end.
func (m *Machine) Stop(now time.Time) []Action {
	m.stopping, m.paused = true, false
	return m.plan(now)
}

// Fetched says that the request on a channel has ended, with these messages.
func (m *Machine) Fetched(now time.Time, c Channel, messages []Message) []Action {
	asked := m.requests[c]
	m.requests[c] = request{}
	for _, message := range messages {
		if !m.arrived(now, message, asked.overdue) && c == Urgent && !asked.stopping {
			m.urgentAfter = now.Add(refusedPause)
		}
	}
	// Less than asked for means that nothing above the bound is left, so the best task
	// that waits is next. If it ranks below the bound, a new poll decides.
	if c == Poll && len(messages) < asked.n && !m.paused && m.free() > 0 {
		if t := m.nextToResume(); t != nil && !asked.bound.Above(t.Rank) {
			m.resume(now, t)
		}
	}
	return m.plan(now)
}

// Ended says that the handler of a task has returned.
func (m *Machine) Ended(now time.Time, id ID) []Action {
	m.tasks = slices.DeleteFunc(m.tasks, func(t *task) bool { return t.ID == id })
	return m.plan(now)
}

// Next reports whether a task may go on with another message in its slot.
func (m *Machine) Next(id ID) bool {
	t := m.find(id)
	return t != nil && t.state == running && t.slot && m.takes() && m.free() >= 0
}

// Parked says that a task waits in place. An answer to an earlier Suspend, which was
// withdrawn since, has another turn and changes nothing.
func (m *Machine) Parked(now time.Time, id ID, turn uint32) []Action {
	if t := m.find(id); t != nil && t.state == yielding && t.turn == turn {
		t.ran, t.state = t.work(now), parked
	}
	return m.plan(now)
}

// NotParked says that a task cannot be suspended. It runs on, beside the one that took
// its slot.
func (m *Machine) NotParked(now time.Time, id ID, turn uint32) []Action {
	if t := m.find(id); t != nil && t.state == yielding && t.turn == turn {
		t.state, t.slot, t.fixed = running, true, true
	}
	return m.plan(now)
}

// Leaving says that the context of a task has ended. A task that waits in place then
// returns without a slot.
func (m *Machine) Leaving(now time.Time, id ID) []Action {
	if t := m.find(id); t != nil {
		t.ran, t.since, t.state = t.work(now), now, leaving
	}
	return m.plan(now)
}

func (m *Machine) find(id ID) *task {
	at := slices.IndexFunc(m.tasks, func(t *task) bool { return t.ID == id })
	if at < 0 {
		return nil
	}
	return m.tasks[at]
}

func (m *Machine) emit(a Action) { m.out = append(m.out, a) }

// free returns how many slots no task has. It is negative after a reduction.
func (m *Machine) free() int {
	n := m.slots
	for _, t := range m.tasks {
		if t.slot {
			n--
		}
	}
	return n
}

// takes reports whether new messages are wanted.
func (m *Machine) takes() bool { return m.takesOverdue() && !m.holding }

// takesOverdue reports whether messages are wanted that are too old to wait.
func (m *Machine) takesOverdue() bool { return !m.paused && !m.stopping && m.slots > 0 }

// arrived starts a message in a free slot or in that of a task which ranks below it. It
// returns false if there is neither.
func (m *Machine) arrived(now time.Time, message Message, overdue bool) bool {
	var victim *task
	fits := (m.takes() || overdue && m.takesOverdue()) && m.free() > 0
	if m.takes() && !fits {
		victim = m.victim(now)
		fits = victim != nil && message.Rank.Above(victim.Rank)
	}
	if !fits {
		m.emit(Action{Kind: Refuse, ID: message.ID})
		return false
	}
	if victim != nil {
		m.preempt(now, victim)
	}
	m.tasks = append(m.tasks, &task{Message: message, slot: true, since: now})
	m.emit(Action{Kind: Start, ID: message.ID})
	return true
}

// preempt takes the slot of a task.
func (m *Machine) preempt(now time.Time, t *task) {
	t.Preempted++
	t.slot = false
	if m.settings.Cancel {
		t.ran, t.since, t.state = t.work(now), now, leaving
		m.emit(Action{Kind: Cancel, ID: t.ID, Preempted: true})
		return
	}
	m.suspend(now, t, true)
}

// suspend has a task wait in place.
func (m *Machine) suspend(now time.Time, t *task, preempted bool) {
	t.turn++
	t.state, t.slot, t.asked = yielding, false, now
	m.emit(Action{Kind: Suspend, ID: t.ID, Turn: t.turn, Preempted: preempted})
}

// preemptible reports whether a task can be preempted, apart from how long it has run.
func (m *Machine) preemptible(t *task) bool {
	return m.settings.Preempt && t.state == running && !t.fixed &&
		(m.settings.Budget < 0 || t.Preempted < m.settings.Budget)
}

// victim returns the task to preempt first: the lowest rank, then the least work.
func (m *Machine) victim(now time.Time) *task {
	var worst *task
	for _, t := range m.tasks {
		if !m.preemptible(t) || t.work(now) < m.settings.MinRun {
			continue
		}
		if worst == nil || worst.Rank.Above(t.Rank) || worst.Rank == t.Rank && t.work(now) < worst.work(now) {
			worst = t
		}
	}
	return worst
}

// nextToResume returns the task to resume first: the highest rank, then the one that
// was suspended longest ago.
func (m *Machine) nextToResume() *task {
	var best *task
	for _, t := range m.tasks {
		if t.state != yielding && t.state != parked {
			continue
		}
		if best == nil || t.Rank.Above(best.Rank) || t.Rank == best.Rank && t.asked.Before(best.asked) {
			best = t
		}
	}
	return best
}

func (m *Machine) resume(now time.Time, t *task) {
	if t.state == parked {
		t.since = now
	}
	t.state, t.slot = running, true
	m.emit(Action{Kind: Resume, ID: t.ID})
}

// plan brings requests and suspended tasks in line with the state, and returns all
// that is to be done.
func (m *Machine) plan(now time.Time) []Action {
	m.wake = time.Time{}
	if m.paused {
		m.suspendAll(now)
	} else {
		m.resumeWaiting(now)
	}
	m.planMain()
	m.planUrgent(now)
	if !m.takes() {
		m.stopAsking(Poll)
	}
	out := m.out
	m.out = nil
	return out
}

func (m *Machine) suspendAll(now time.Time) {
	for _, t := range m.tasks {
		if t.state == running && !t.fixed {
			m.suspend(now, t, false)
		}
	}
}

// resumeWaiting gives free slots to tasks that wait for one, after asking for messages
// that rank above them.
func (m *Machine) resumeWaiting(now time.Time) {
	for m.free() > 0 {
		t := m.nextToResume()
		if t == nil {
			return
		}
		if m.takes() && m.settings.Preempt && m.settings.Reachable(t.Rank) {
			if !m.requests[Poll].inFlight {
				m.ask(Poll, m.free(), t.Rank)
			}
			return
		}
		m.resume(now, t)
	}
}

// planMain asks for as many messages as there are free slots, unless a task waits for
// one of them.
func (m *Machine) planMain() {
	n := 0
	if m.nextToResume() == nil {
		n = max(min(m.free(), m.slots+1-m.strays()), 0)
	}
	overdue := m.holding && m.takesOverdue()
	switch {
	case overdue:
		n = min(n, m.overdue)
	case !m.takes():
		n = 0
	}
	r := m.requests[Main]
	switch {
	case r.inFlight && r.overdue && m.takesOverdue(): // it does not wait
	case r.inFlight && r.n > n:
		m.stopAsking(Main)
	case !r.inFlight && n > 0 && overdue:
		m.overdue = 0
		m.requests[Main] = request{inFlight: true, n: n, overdue: true}
		m.emit(Action{Kind: Ask, Channel: Main, N: n, Overdue: true})
	case !r.inFlight && n > 0:
		m.ask(Main, n, Rank{})
	}
}

// strays returns how many tasks have lost their slots and are still returning. Handlers
// that ignore the end of their contexts would become more and more otherwise.
func (m *Machine) strays() int {
	n := 0
	for _, t := range m.tasks {
		if t.state == leaving && !t.slot {
			n++
		}
	}
	return n
}

// planUrgent waits for a message that ranks above the task to preempt first.
func (m *Machine) planUrgent(now time.Time) {
	t := m.victim(now)
	m.wakeForMinRun(now, t)
	wanted := m.takes() && t != nil && m.settings.Reachable(t.Rank)
	if wanted && now.Before(m.urgentAfter) {
		m.wakeAt(m.urgentAfter)
		wanted = false
	}
	r := m.requests[Urgent]
	switch {
	case r.inFlight && (!wanted || r.bound != t.Rank):
		m.stopAsking(Urgent)
	case !r.inFlight && wanted && m.free() <= 0:
		m.ask(Urgent, 1, t.Rank)
	}
}

// wakeForMinRun has Tick called when a task gets preemptible that ranks below t.
func (m *Machine) wakeForMinRun(now time.Time, t *task) {
	for _, o := range m.tasks {
		left := m.settings.MinRun - o.work(now)
		if m.preemptible(o) && left > 0 && (t == nil || t.Rank.Above(o.Rank)) {
			m.wakeAt(now.Add(left))
		}
	}
}

func (m *Machine) wakeAt(at time.Time) {
	if m.wake.IsZero() || at.Before(m.wake) {
		m.wake = at
	}
}

func (m *Machine) ask(c Channel, n int, bound Rank) {
	m.requests[c] = request{inFlight: true, n: n, bound: bound}
	m.emit(Action{Kind: Ask, Channel: c, N: n, Bound: bound})
}

func (m *Machine) stopAsking(c Channel) {
	if r := &m.requests[c]; r.inFlight && !r.stopping {
		r.stopping = true
		m.emit(Action{Kind: StopAsking, Channel: c})
	}
}
