// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// purge posts a purge, which is done in steps. After each of them the state is one
// that a crash may leave.
func (h *shardSim) purge() {
	p, arg := h.anyPlace(), queue.Purge{Max: h.w.pick(0, 1, 5)}
	if h.w.chance(2) {
		arg.Before = h.now.Add(-time.Duration(h.w.rng.IntN(30)) * time.Second)
	}
	o := &op{name: fmt.Sprint("purge ", p)}
	h.w.event("post %d %s", h.number, o.name)
	var want error
	var last queue.SeqNo // when it began
	steps := 0
	s := h.s.Manual()
	err := s.InjectInSteps(func() (done bool, err error) {
		if h.queue(p) == nil {
			want = queueserver.ErrNoEntity
		}
		err = s.Apply(p.queue(), func(real *queue.Queue, out *queue.Effects) error {
			if steps++; steps == 1 {
				last = real.Last()
			}
			h.queue(p).reorder(real)
			gone := arg.Gone
			done = real.Purge(s.Now(), &arg, s.Visits(), out)
			h.purged(p, real, &arg, last, arg.Gone-gone, done && steps == 1)
			return nil
		})
		o.ran, o.version = true, h.version()
		h.addVersion()
		return done, err
	}, func(err error) { h.expect(o, err, want) })
	if err != nil {
		h.w.failf("%s: %v", o.name, err)
	}
	h.open++
}

// purged removes from the model what a step of a purge has removed, and checks that it
// should have; all says that nothing may be left over.
func (h *shardSim) purged(p place, real *queue.Queue, arg *queue.Purge, last queue.SeqNo, gone int, all bool) {
	q, certain := h.queue(p), 0
	for _, m := range slices.Clone(q.messages) {
		wanted := m.state != queue.Locked && m.seq <= last && (arg.Before.IsZero() || m.enqueued.Before(arg.Before))
		if _, ok := real.Lookup(m.seq); ok {
			if all && wanted && (arg.Max == 0 || arg.Gone < arg.Max) {
				h.w.failf("%v: message %d was not purged", p, m.seq)
			}
			continue
		}
		if !m.expired(h.now) { // else it may have been cleared away before
			certain++
			if !wanted {
				h.w.failf("%v: message %d, %v, was purged", p, m.seq, m.state)
			}
		}
		q.remove(m)
	}
	if certain > gone {
		h.w.failf("%v: %d messages were purged, and %d counted", p, certain, gone)
	}
}
