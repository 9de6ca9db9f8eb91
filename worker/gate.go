// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/window"
)

// gate decides when a pool takes messages: in its windows, and while there is spare
// capacity. While it is closed, only overdue messages are taken. It belongs to loop.
type gate struct {
	windows     window.Set
	whenSpare   bool
	latestStart time.Duration
	began       time.Time
	asking      bool // for overdue messages
	askAt       time.Time
	rest        time.Duration // the last one, while the handler is unavailable
	restUntil   time.Time
	wake        time.Time // when time alone may change the answer; zero: never
}

// Why a pool does not work.
const (
	outsideWindows = "outside its windows"
	noSpare        = "no spare capacity"
	unavailable    = "its handler is unavailable"
)

// spareGrace is how long a pool waits for the broker to say whether there is spare
// capacity. A broker that does not know pools says nothing, and counts as spare.
const spareGrace = 3 * time.Second

func (p *Pool) parseWindows() (window.Set, error) {
	return window.Parse(p.Windows, time.Local)
}

// closed returns why no messages are taken at now; empty if they are.
func (g *gate) closed(now time.Time, o orders) string {
	switch {
	case now.Before(g.restUntil):
		return unavailable
	case !g.windows.Open(now):
		return outsideWindows
	case g.whenSpare && !o.spare && (o.known || now.Sub(g.began) < spareGrace):
		return noSpare
	}
	return ""
}

// next returns when time alone may change the answer; zero if it does not.
func (g *gate) next(now time.Time) time.Time {
	at := g.windows.Next(now)
	earlier := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	earlier(g.restUntil)
	if g.whenSpare {
		earlier(g.began.Add(spareGrace))
	}
	if g.latestStart > 0 && !g.asking {
		earlier(g.askAt)
	}
	return at
}

// The bounds of how long a pool rests whose handler is unavailable.
const (
	firstRest = time.Second
	lastRest  = time.Minute
)

// unavailableAt has the pool rest, longer each time. Tasks of before the rest do not count.
func (g *gate) unavailableAt(now, began time.Time) {
	if began.Before(g.restUntil) {
		return
	}
	g.rest = min(max(2*g.rest, firstRest), lastRest)
	g.restUntil = now.Add(g.rest)
}

// restAfter has the pool rest if the handler is unavailable, as the result of a run says.
func (r *run) restAfter(now, began time.Time, of result) {
	if errors.Is(of.err, ErrUnavailable) {
		r.gate.unavailableAt(now, began)
		r.passGate(now)
	} else {
		r.gate.rest = 0
	}
}

// passGate brings the machine in line with the gate.
func (r *run) passGate(now time.Time) {
	closed := r.gate.closed(now, r.pool.wished().orders)
	if r.gate.wantsOverdue(now, closed) {
		r.wg.Go(r.lookForOverdue)
	}
	r.gate.wake = r.gate.next(now)
	if closed != r.holding {
		r.settings.log.Info("pool gate", "closed", closed)
		was := r.holding
		r.holding = closed
		switch {
		case was == "":
			r.do(r.machine.Hold(now))
		case closed == "":
			r.do(r.machine.Unhold(now))
		}
	}
}
