// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/autoscale"
	"github.com/triagemq/triagemq/worker/internal/slots"
)

const (
	// announceEvery is how often the broker is told what the pool does.
	announceEvery = 500 * time.Millisecond
	// announceRetry is the longest time between attempts while the broker does not answer.
	announceRetry = 5 * time.Second
	// announceTimeout bounds one attempt, and leaveTimeout the last, which Run waits for.
	announceTimeout = 2 * time.Second
	leaveTimeout    = time.Second
	// outdated is when an answer says nothing about the present any more.
	outdated = 3 * time.Second
	// orderWait is how long the first request for messages waits for the first answer, after
	// the broker could be reached.
	orderWait = 3 * time.Second
	// These are limits of our broker, which another may not have.
	maxText    = 400
	maxSources = 256
	maxOrdered = 10_000 // slots
)

// teller tells the broker of a pool; see [client.Client.AnnouncePool].
type teller func(context.Context, client.PoolReport) (client.PoolOrders, error)

// announcer tells the broker what a pool does, has the pool obey the broker's orders, and
// scales it. It belongs to one goroutine.
type announcer struct {
	run    *run
	tell   teller            // nil: nobody is told
	scaler *autoscale.Scaler // nil without Pool.Scale
	static client.PoolReport // the part that does not change

	next      time.Time // when to tell again
	failures  int       // since the last answer
	explained bool      // why the broker does not answer
	last      client.PoolOrders
	heard     time.Time // when last came; zero: never
}

// announce tells the broker of the pool, obeys its orders and follows demand, until the
// pool has stopped.
func (r *run) announce() {
	defer r.order()
	a := newAnnouncer(r)
	if a.tell == nil {
		r.order()
		if a.scaler == nil {
			return
		}
	}
	tick := time.NewTicker(announceEvery)
	defer tick.Stop()
	for {
		a.step()
		select {
		case <-r.over:
			a.leave()
			return
		case <-r.hurry:
			a.next = time.Time{}
		case <-tick.C:
		}
	}
}

// awaitOrders waits until the broker has answered the first announcement. A pool that was
// paused while its process was away must not begin a task before it knows. The wait is
// bounded: a broker may be unable to answer, and messages must be worked on all the same.
func (r *run) awaitOrders(ctx context.Context) {
	select {
	case <-r.ordered:
		return
	default:
	}
	select {
	case r.hurry <- struct{}{}: // the broker can be reached now, if it could not before
	default:
	}
	limit := time.NewTimer(orderWait)
	defer limit.Stop()
	select {
	case <-r.ordered:
	case <-ctx.Done():
	case <-limit.C:
		r.settings.log.Warn("the broker does not say whether the pool is paused; it begins to work", "waited", orderWait)
		r.order()
	}
}

// hasOrders says that the orders of the broker are known, or that there are none. It returns
// after loop has carried them out.
func (r *run) hasOrders() {
	r.post(func(now time.Time) []slots.Action {
		r.heed(now)
		return nil
	})
	r.order()
}

func newAnnouncer(r *run) *announcer {
	p := r.pool
	a := &announcer{run: r, tell: p.tell}
	if a.tell == nil && p.Client != nil {
		a.tell = p.Client.AnnouncePool
	}
	host, _ := os.Hostname() // without one, the process is shown by its number
	a.static = client.PoolReport{
		Name: r.settings.name, Instance: rand.Text(), Host: printable(host), Process: os.Getpid(), Background: p.WhenSpare, Beside: p.SpareBeside,
	}
	for _, s := range r.settings.sources[:min(len(r.settings.sources), maxSources)] {
		a.static.Sources = append(a.static.Sources, s.Entity)
	}
	// The orders of an earlier Run still hold.
	if o := p.wished().orders; o.revision != 0 {
		a.last = client.PoolOrders{Paused: o.paused, Slots: o.slots, Revision: o.revision, Seal: o.seal}
	}
	if s := p.Scale; s != nil {
		a.scaler = autoscale.New(r.settings.scaleLimits(s), r.settings.slots)
	}
	return a
}

// scaleLimits are the limits of autoscaling with their defaults.
func (settings) scaleLimits(s *Scale) autoscale.Limits {
	l := autoscale.Limits{Floor: s.Min, Ceiling: s.Max, CoolDown: s.CoolDown}
	if l.CoolDown == 0 {
		l.CoolDown = defaultCoolDown
	}
	return l
}

// step tells the broker if it is time, and scales.
func (a *announcer) step() {
	if now := time.Now(); a.tell != nil && !now.Before(a.next) {
		ctx, cancel := context.WithTimeout(a.run.life, announceTimeout)
		orders, err := a.tell(ctx, a.report())
		cancel()
		if a.run.life.Err() == nil {
			a.answered(time.Now(), orders, err)
		}
	}
	if a.scaler != nil {
		a.scale(time.Now())
	}
}

// report returns what to tell the broker.
func (a *announcer) report() client.PoolReport {
	s, out := a.run.report(), a.static
	out.Slots, out.Busy, out.Suspended, out.Retrying = s.Slots, s.Busy, s.Suspended, s.Waiting
	out.Paused, out.Idle = s.Paused, printable(s.Idle)
	select {
	case <-a.run.stopped:
		out.Idle = "stopping"
	default:
	}
	out.Completed, out.Failed, out.DeadLettered, out.Preempted = s.Completed, s.Failed, s.DeadLettered, s.Preempted
	out.Obeyed = a.last
	return out
}

// answered has the pool obey an answer, or waits longer after none.
func (a *announcer) answered(now time.Time, o client.PoolOrders, err error) {
	if err != nil {
		a.failed(now, err)
		return
	}
	if o.Revision != a.last.Revision {
		a.run.settings.log.Info("pool got orders", "paused", o.Paused, "slots", o.Slots)
	}
	first := a.heard.IsZero()
	a.last, a.heard, a.failures, a.explained = o, now, 0, false
	a.next = now.Add(announceEvery / 2) // the next tick may be a little early
	a.run.obey(orders{paused: o.Paused, slots: min(o.Slots, maxOrdered), revision: o.Revision, seal: o.Seal, spare: o.Spare, known: true})
	if first {
		a.run.hasOrders()
	}
}

// failed waits longer after each failure. A broker that does not know pools, or does not
// like this one, is not asked again. The orders stay, what the broker measured does not.
func (a *announcer) failed(now time.Time, err error) {
	log := a.run.settings.log
	// Other brokers refuse the unknown in words of their own, or not at all.
	foreign := a.run.supply.known.Load() && !a.run.supply.extensions.Load()
	unsupported := foreign || errors.Is(err, errors.ErrUnsupported)
	permanent := unsupported || errors.Is(err, client.ErrInvalid)
	switch {
	case unsupported:
		log.Info("this broker does not list pools: they cannot be paused there, and demand is guessed", "err", err)
	case permanent:
		log.Warn("the broker refuses to list this pool", "err", err)
	case !a.explained && (errors.Is(err, client.ErrUnauthorized) || errors.Is(err, client.ErrQuota)):
		log.Warn("the broker does not list this pool for now", "err", err)
		a.explained = true
	default:
		log.Debug("the broker was not told of this pool", "err", err)
	}
	if permanent {
		a.tell = nil
	}
	if refusal, ok := errors.AsType[*client.Error](err); permanent || ok && !errors.Is(refusal, client.ErrBusy) {
		a.run.order() // the broker has answered, and has no orders
	}
	a.failures++
	a.next = now.Add(min(announceEvery<<min(a.failures, 8), announceRetry))
	if permanent || now.Sub(a.heard) > outdated {
		a.run.pool.steer(func(w *wishes) { w.orders.known, w.orders.spare = false, false })
	}
}

// scale follows demand.
func (a *announcer) scale(now time.Time) {
	s := a.run.report()
	in := autoscale.Sample{Busy: s.Busy + s.Suspended}
	if a.tell != nil && a.last.Known && now.Sub(a.heard) <= outdated {
		processes := max(a.last.Instances, 1)
		in.Measured, in.Waiting = true, a.last.Waiting
		in.Demand = (a.last.Demand + processes - 1) / processes
	}
	a.run.scaleTo(a.scaler.Decide(now, in))
}

// leave tells the broker that the pool has stopped, if the broker knows it at all.
func (a *announcer) leave() {
	if a.tell == nil || a.heard.IsZero() || a.failures > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.run.life), leaveTimeout)
	defer cancel()
	report := a.report()
	report.Leaving = true
	_, _ = a.tell(ctx, report) // it is forgotten soon, in any case
}

// printable makes text fit for a list of pools.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "?"))
	if rs := []rune(text); len(rs) > maxText {
		text = string(rs[:maxText])
	}
	return strings.TrimSpace(text)
}
