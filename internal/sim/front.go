// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/monitor"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// front is a run of a whole broker with its goroutines, and one client that
// does one operation at a time and waits until all goroutines are blocked. It
// checks what only the broker does: changes of policy, receivers over several
// queues, measurements, and the recovery of all of it.
type front struct {
	*world
	ctx      context.Context
	quiet    func() // returns when all goroutines are blocked
	start    time.Time
	set      atomic.Int64 // by how much the wall clock was set in all, in nanoseconds; the broker's goroutines read it
	now      time.Time    // by the broker's clock
	life     *life
	lanes    []*lane
	receiver *modelReceiver // the only receiver; nil if there is none
}

// lane is a queue and its model.
type lane struct {
	name     string
	rules    *rules
	q        *modelQueue
	admitter *modelAdmitter
	counts   map[string]tally // by class
	past     map[string]tally // of classes that earlier policies had
}

// tally is what a class has seen.
type tally struct{ arrived, completed, refused, evicted uint64 }

func (t tally) plus(o tally) tally {
	return tally{t.arrived + o.arrived, t.completed + o.completed, t.refused + o.refused, t.evicted + o.evicted}
}

const laneLock = 30 * time.Second

// runFront plays a seed against a broker. It must be called in a bubble of
// testing/synctest, whose Wait is quiet: time passes only when the client sleeps.
// trace, if not nil, gets a line for everything that happens.
func runFront(ctx context.Context, seed uint64, turns int, quiet func(), trace io.Writer) (r result, err error) {
	f := &front{
		world: &world{rng: rand.New(rand.NewPCG(seed, 2)), trace: sha256.New(), out: trace, policies: make(map[string]*rules)},
		ctx:   ctx, quiet: quiet, start: time.Now(),
	}
	defer func() {
		if v := recover(); v != nil {
			broken, ok := v.(violation)
			if !ok {
				panic(v)
			}
			err = fmt.Errorf("broker, seed %d, turn %d: %w", seed, f.turn, broken.error)
		}
		if f.life != nil {
			f.life.stop()
		}
		f.result.Messages = f.made
		f.trace.Sum(f.result.Trace[:0])
		r = f.result
	}()
	f.life = f.open(vfs.NewMem())
	f.now = f.life.Now()
	for i := range 1 + f.rng.IntN(3) {
		f.create(fmt.Sprint("lane-", i))
	}
	for f.turn = range turns {
		f.play()
		f.quiet()
		f.compare()
	}
	f.leave()
	return r, nil
}

// life is a broker and all below it, from start to end.
type life struct {
	*broker.Broker
	disk  *vfs.Mem
	fault *vfs.Fault
	stop  func()
}

func (f *front) open(disk *vfs.Mem) *life {
	l := &life{disk: disk, fault: vfs.NewFault(disk)}
	j, err := wal.Open(l.fault, wal.Options{SegmentSize: 1 << 20})
	if err != nil {
		f.failf("open: %v", err)
	}
	shards, err := queueserver.OpenAll(f.ctx, j, []journal.Shard{0, 1}, queueserver.Options{
		Clock: clock.New(f.read), NewMonitor: monitor.New(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		f.failf("open: %v", err)
	}
	if l.Broker, err = broker.Open(shards, nil, slog.New(slog.DiscardHandler)); err != nil {
		f.failf("open: %v", err)
	}
	storeys := []*storey{f.storey(l.Run), f.storey(shards[0].Run, shards[1].Run), f.storey(j.Run)}
	l.stop = sync.OnceFunc(func() {
		for _, s := range storeys {
			s.end()
			s.done.Wait()
		}
		_ = j.Close() // everything is durable
	})
	return l
}

// storey is what starts and ends together.
type storey struct {
	end  context.CancelFunc
	done sync.WaitGroup
}

func (f *front) storey(runs ...func(context.Context) error) *storey {
	ctx, end := context.WithCancel(f.ctx)
	s := &storey{end: end}
	for _, run := range runs {
		s.done.Go(func() { _ = run(ctx) }) // the disk does not fail
	}
	return s
}

// create makes a queue.
func (f *front) create(name string) {
	l := &lane{name: name, rules: f.counting(), counts: map[string]tally{}, past: map[string]tally{}}
	l.q = newModelQueue(queue.Config{LockFor: laneLock, Order: l.rules.real.Order()}, &f.now)
	l.admitter = newModelAdmitter(l.rules)
	_, err := f.life.CreateQueue(f.ctx, entity.Queue{
		Name: name, Policy: []byte(l.rules.text), LockDuration: entity.Duration(laneLock), MaxDeliveryCount: 2000,
	})
	if err != nil {
		f.failf("create %s: %v", name, err)
	}
	f.lanes = append(f.lanes, l)
}

// counting draws a policy that counts messages, not bytes: its effect is always
// certain.
func (f *front) counting() *rules {
	for {
		if r := f.rules(); !r.inBytes() {
			return r
		}
	}
}

// play is one turn.
func (f *front) play() {
	l := f.lanes[f.rng.IntN(len(f.lanes))]
	switch n := f.rng.IntN(100); {
	case n < 40:
		f.send(l)
	case n < 62:
		f.receive()
	case n < 80:
		f.settle(l)
	case n < 87:
		f.leave()
		f.change(l)
	case n < 93:
		f.leave()
		f.pass()
	case n < 96:
		f.restart()
	case n < 98:
		f.crash()
	default:
		f.leave()
	}
}

// read shows the clocks of the bubble, one of which is set now and then.
func (f *front) read() clock.Reading {
	now := time.Now()
	return clock.Reading{Wall: now.Add(time.Duration(f.set.Load())), Elapsed: now.Sub(f.start)}
}

// pass lets time pass, perhaps with another clock on the wall. It has to go on
// nearly as fast for the broker.
func (f *front) pass() {
	if f.chance(3) {
		by := f.setting(f.read().Wall, f.now)
		f.set.Add(int64(by))
		f.result.Set++
		f.event("set the clock by %v", by)
	}
	before, d := f.life.Now(), time.Duration(f.rng.IntN(45_000))*time.Millisecond
	time.Sleep(d)
	// An idle shard may notice only seconds later that the clock was set forward.
	// Any operation makes it notice.
	for _, l := range f.lanes {
		if _, err := f.life.Peek(f.ctx, l.name, 0, 1, nil); err != nil {
			f.failf("peek at %s: %v", l.name, err)
		}
	}
	if got := f.life.Now().Sub(before); got < d-d/10 {
		f.failf("%v have passed, and %v for the broker", d, got)
	}
}

// restart stops the broker cleanly and starts it again.
func (f *front) restart() {
	f.leave()
	f.event("restart")
	f.life.stop()
	f.reopen(f.life.disk)
}

// crash starts the broker again on what a power failure leaves. Everything was
// answered, so all of it must be there, but for the last measurements.
func (f *front) crash() {
	f.leave()
	f.event("crash")
	f.result.Crashes++
	image := f.life.disk.CrashClone(f.rng.Uint64())
	f.life.stop()
	f.reopen(image)
	f.quiet()
	for _, l := range f.lanes {
		found := f.measured(f.life, l)
		for name, got := range found {
			// The last measurements may be those of a class that no longer exists.
			if want := l.counts[name].plus(l.past[name]); got.arrived > want.arrived || got.completed > want.completed ||
				got.refused > want.refused || got.evicted > want.evicted {
				f.failf("%s: class %q: measured %+v after a crash, there were %+v", l.name, name, got, want)
			}
		}
		l.counts = found // a class without stored measurements is not among them
	}
}

// reopen starts the broker. No message is locked, and no rate is used up.
func (f *front) reopen(disk *vfs.Mem) {
	f.life = f.open(disk)
	for _, l := range f.lanes {
		for _, m := range l.q.messages {
			if m.state == queue.Locked {
				l.q.rest(m)
			}
		}
		l.q.booked = map[string]time.Time{}
		l.q.beginTurns()
		l.admitter = newModelAdmitter(l.rules)
	}
}
