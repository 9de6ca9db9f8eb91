// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/window"
	"github.com/triagemq/triagemq/worker/internal/slots"
)

// gate decides when a pool takes messages: in its windows, while there is spare
// capacity, and in any case while its oldest message is too old. It belongs to loop.
type gate struct {
	windows     window.Set
	whenSpare   bool
	latestStart time.Duration
	began       time.Time
	overdue     bool // the oldest message has reached latestStart
	asking      bool // for the oldest message
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
	case g.overdue:
		return ""
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

// The time between two questions for the oldest message is a tenth of LatestStart,
// within these bounds.
const (
	minAskOldest = time.Second
	maxAskOldest = time.Minute
)

// wantsOldest reports whether to ask for the oldest message now.
func (g *gate) wantsOldest(now time.Time) bool {
	if g.latestStart == 0 || g.asking || now.Before(g.askAt) {
		return false
	}
	g.asking = true
	return true
}

// oldestIs takes over the answer; zero means that there is no message.
func (g *gate) oldestIs(now, enqueued time.Time) {
	g.asking = false
	g.overdue = !enqueued.IsZero() && now.Sub(enqueued) >= g.latestStart
	g.askAt = now.Add(min(max(g.latestStart/10, minAskOldest), maxAskOldest))
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
	if r.gate.wantsOldest(now) {
		r.wg.Go(r.askOldest)
	}
	r.gate.wake = r.gate.next(now)
	closed := r.gate.closed(now, r.pool.wished().orders)
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

func (r *run) askOldest() {
	enqueued, err := r.supply.oldest(r.asking)
	if err != nil {
		r.settings.log.Debug("age of the oldest message is unknown", "err", err)
	}
	r.post(func(now time.Time) []slots.Action {
		r.gate.oldestIs(now, enqueued)
		r.passGate(now)
		return nil
	})
}

// peekChannel has receivers that only look.
const peekChannel = slots.Channels

// peekBatch is how many messages are looked at at a time, and peekBatches how often. The
// oldest may be deferred or scheduled.
const (
	peekBatch   = 32
	peekBatches = 8
)

// oldest returns when the oldest message that waits was enqueued; zero if there is none.
func (s *supply) oldest(ctx context.Context) (time.Time, error) {
	var oldest time.Time
	var errs []error
	for i := range s.sources {
		at, err := s.oldestOf(ctx, i)
		if err != nil {
			errs = append(errs, err)
		}
		if !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest, errors.Join(errs...)
}

func (s *supply) oldestOf(ctx context.Context, source int) (time.Time, error) {
	r, err := s.receiver(ctx, receiverKey{peekChannel, source, source + 1, -1})
	if err != nil {
		return time.Time{}, err
	}
	from := client.SeqNo(0)
	for range peekBatches {
		ms, err := r.Peek(ctx, from, peekBatch)
		if err != nil {
			return time.Time{}, err
		}
		for _, m := range ms {
			if m.State == client.Active {
				return m.Enqueued, nil
			}
			from = m.SeqNo + 1
		}
		if len(ms) < peekBatch {
			break
		}
	}
	return time.Time{}, nil
}
