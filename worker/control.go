// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"sync/atomic"
	"time"
)

// wishes are what the caller, the broker and the autoscaler want of a pool. They stay
// from one Run to the next.
type wishes struct {
	paused  bool // by Pause
	resized bool // by Resize, to slots
	slots   int

	scaled bool // by the autoscaler, to scale
	scale  int

	orders orders
}

// orders are what the broker wants of a pool.
type orders struct {
	paused bool
	slots  int  // 0: the pool's own setting
	spare  bool // no other pool of the broker is fully busy
	known  bool // the broker has answered
	// revision tells the broker which orders these are, after it has restarted.
	revision int64
	seal     string // with which they were given
}

// wanted returns the number of slots: that of the broker's operator, else that of the
// autoscaler, else that of the program.
func (w *wishes) wanted(setting int) int {
	switch {
	case w.orders.slots > 0:
		return w.orders.slots
	case w.scaled:
		return w.scale
	case w.resized:
		return w.slots
	}
	return setting
}

// steer changes the wishes, and has a running pool look at them.
func (p *Pool) steer(change func(*wishes)) {
	p.mu.Lock()
	change(&p.wishes)
	p.mu.Unlock()
	if r := p.live.Load(); r != nil {
		r.look()
	}
}

func (p *Pool) wished() wishes {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wishes
}

// obey carries out the broker's orders.
func (r *run) obey(o orders) { r.pool.steer(func(w *wishes) { w.orders = o }) }

// scaleTo sets the number of slots that demand asks for.
func (r *run) scaleTo(slots int) {
	r.pool.steer(func(w *wishes) { w.scaled, w.scale = true, max(slots, 0) })
}

// totals are the counters of a pool.
type totals struct {
	completed, failed, deadLettered, preempted, handedBack, lockLost, panics atomic.Uint64
	suspended, lost                                                          atomic.Int64 // nanoseconds
}

func (t *totals) fill(s *Status) {
	s.Completed, s.Failed, s.DeadLettered = t.completed.Load(), t.failed.Load(), t.deadLettered.Load()
	s.Preempted, s.HandedBack = t.preempted.Load(), t.handedBack.Load()
	s.LockLost, s.Panics = t.lockLost.Load(), t.panics.Load()
	s.SuspendedTime, s.LostWork = time.Duration(t.suspended.Load()), time.Duration(t.lost.Load())
}

// count adds one outcome.
func (t *totals) count(o Outcome) {
	switch o {
	case Completed:
		t.completed.Add(1)
	case DeadLettered:
		t.deadLettered.Add(1)
	case HandedBack:
		t.handedBack.Add(1)
	case LockLost:
		t.lockLost.Add(1)
	case Failed, Discarded:
		t.failed.Add(1)
	}
}
