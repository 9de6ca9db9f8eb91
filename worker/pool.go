// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/client"
)

// Pool takes messages from its sources and runs its handler for each. The fields are
// settings: they must not change after Run was called. The zero value of each has a
// useful meaning; only Client and Handler are required. A pool must not be copied.
type Pool struct {
	// Client connects to the broker. It may be lazy: the pool waits for the broker.
	Client *client.Client
	// Name is shown by `triagemq pool list`; default: the first source. Pools of one
	// name, in several processes, are paused and resized together.
	Name string
	// Source is the queue or subscription to take from; "" means the entity that the
	// client's address names.
	Source string
	// Sources are several to take from as one pool, instead of Source. Those that do not
	// exist are looked for every three seconds; the others are served meanwhile.
	Sources []Source
	// Select is how to choose among several sources; default: the first that has a message.
	Select Selection
	// MinPriority and MaxPriority narrow what the pool takes.
	MinPriority, MaxPriority client.Priority

	// Sessions has the pool take sessions, of a queue or subscription that requires them:
	// each is one slot's at a time, with its messages in order.
	Sessions *Sessions

	// Slots is how many handlers run at a time; default 1.
	Slots int
	// Buffer is how many messages to fetch ahead of free slots; default none. Our own
	// broker takes them back when another consumer can start them sooner: one with free
	// slots, or a free slot for a more urgent message.
	Buffer int
	// DurableLocks has the locks survive a restart of the broker from the first moment of a
	// task, instead of its first second: no message is at two workers at a time. It costs a
	// record in the broker's log for each message, and needs a broker of ours.
	DurableLocks bool
	// Handler is run for each message.
	Handler Handler
	// Middleware wraps the handler; the first is the outermost.
	Middleware []Middleware

	// Timeout bounds one run of the handler; default none. Its cause is ErrTimeout.
	Timeout time.Duration
	// Retry says when a message whose handler failed is available again; default
	// exponential from two seconds to ten minutes, with jitter: ten deliveries outlast an
	// outage of ten minutes.
	Retry Backoff
	// Grace is how long handlers may go on after Run's context has ended; default 30 s.
	// Then they are cancelled and their messages handed back, which counts as no failure.
	Grace time.Duration

	// Preempt lets a message of a higher level take the place of a running one.
	Preempt *Preemption
	// Scale lets the number of slots follow demand, between its limits.
	Scale *Scale
	// Windows are the times at which the pool works, such as "Mon-Fri 19:00-07:00
	// Europe/Berlin" or "Sat,Sun"; default always.
	Windows []string
	// WhenSpare has the pool work only while no other pool is fully busy: at its own sources,
	// and at the queues and subscriptions of SpareBeside, where it needs Listen as well.
	WhenSpare   bool
	SpareBeside []string
	// LatestStart is the age at which a message is started outside the windows, or without
	// spare capacity; zero: none is. Younger messages still wait. At brokers without our
	// extensions a younger one may be started in the place of one that is running elsewhere.
	LatestStart time.Duration

	// Log gets what an operator should know, and a line for each failure of the handler, at
	// most one in a second when there are many; default [slog.Default].
	Log *slog.Logger
	// Observer is told of each step of each task; default none.
	Observer Observer

	open     opener        // of tests; nil: Client
	sessions sessionOpener // of tests; nil: Client
	tell     teller        // of tests; nil: Client
	live     atomic.Pointer[run]
	totals   totals
	mu       sync.Mutex
	wishes   wishes // guarded by mu
}

// Source is one of several queues or subscriptions of a pool.
type Source struct {
	Entity string // see [client.Subscription]
	Weight int    // with ByWeight: its share of the slots' turns; default 1
}

// Selection is how a pool chooses among its sources.
type Selection uint8

// The rules.
const (
	// ByOrder takes from the first source, in the order given, that has a message.
	ByOrder Selection = iota
	// ByLevel takes the message of the highest level of all sources.
	ByLevel
	// ByWeight takes from each in proportion to its weight, as far as it has messages.
	ByWeight
)

// Sessions has the settings of a pool that takes sessions. The zero value is useful. A message
// that is to be tried again keeps its session, and with it the slot, until then.
type Sessions struct {
	// Idle is how long a slot keeps a session that has no more messages; default one second.
	Idle time.Duration
}

// Preemption has the settings of preempting. The zero value is useful.
type Preemption struct {
	// MinRun is how long a task runs before it can be preempted; default not at all.
	MinRun time.Duration
	// Budget is how often one message can be preempted; default 10, negative: no limit.
	// Senders cannot set the count, except at brokers without our extensions.
	Budget int
	// Cancel ends the context of the preempted handler, with ErrPreempted as the cause, so that it
	// saves its state and returns. Otherwise it goes on until it calls [Task.Yield].
	Cancel bool
}

// Scale has the limits of autoscaling.
type Scale struct {
	Min, Max int           // slots; Min may be 0, Max is required
	CoolDown time.Duration // from the last change to a smaller number; default one minute
}

// Status is a snapshot of a pool.
type Status struct {
	Name      string
	Slots     int // wanted
	Busy      int // handlers that run
	Suspended int // handlers that wait in place
	Waiting   int // messages that wait for a retry, with their locks
	Paused    bool
	Idle      string // why the pool does not work now: "paused", "outside its windows", …; "" if it does

	Completed, Failed, DeadLettered, Preempted, HandedBack, LockLost, Panics uint64
	SuspendedTime, LostWork                                                  time.Duration
}

// Middleware wraps a handler.
type Middleware func(Handler) Handler

// Observer is told of tasks. Its methods are called by the goroutine of the task and
// must not block.
type Observer interface {
	Started(t *Task)
	Suspended(t *Task)
	Resumed(t *Task, after time.Duration)
	Ended(t *Task, outcome Outcome, err error, took time.Duration)
}

// Run takes messages and runs the handler until ctx ends; then it stops gracefully. It
// returns nil after a graceful stop, or the error that makes it useless to go on: a
// wrong setting ([ErrInvalid]), or missing rights. A broker that cannot be reached, and sources
// of which none exists yet, are waited for. [ErrHandlerStuck] means that handlers
// ignored the end of their contexts.
func (p *Pool) Run(ctx context.Context) error {
	s, err := p.checked()
	if err != nil {
		return err
	}
	r := newRun(ctx, p, s)
	if !p.live.CompareAndSwap(nil, r) {
		return fmt.Errorf("%w: pool %q runs already", ErrInvalid, s.name)
	}
	defer p.live.Store(nil)
	return r.loop(ctx)
}

// Pause stops taking messages, and suspends the running tasks that can be.
func (p *Pool) Pause() { p.steer(func(w *wishes) { w.paused = true }) }

// Resume undoes Pause.
func (p *Pool) Resume() { p.steer(func(w *wishes) { w.paused = false }) }

// Resize sets the number of slots, as if Slots had been set to it; 0 is none. Tasks
// above it run to their end.
func (p *Pool) Resize(slots int) {
	p.steer(func(w *wishes) { w.resized, w.slots = true, max(slots, 0) })
}

// Status returns the present state. Its counters go on from one Run to the next.
func (p *Pool) Status() Status {
	if r := p.live.Load(); r != nil {
		return r.report()
	}
	s := Status{Name: p.Name, Idle: "not running"}
	p.totals.fill(&s)
	return s
}
