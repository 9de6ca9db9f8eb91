// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker/internal/slots"
)

// With LatestStart a pool whose gate is closed takes messages that are overdue, and no
// others. It peeks for the oldest, then polls at that source and that level, where the oldest
// is the first. What comes and is not overdue is handed back. Then it peeks again.

// The time between two looks is a tenth of LatestStart, within these bounds.
const (
	minLookOverdue = time.Second
	maxLookOverdue = time.Minute
)

// peekBatch is how many messages are peeked at at a time, and peekBatches how often in one
// look at a source.
const (
	peekBatch   = 32
	peekBatches = 8
)

// peekChannel has receivers that peek, and those that poll for what was found.
const peekChannel = slots.Channels

// overdue are messages of one source and level that are too old to wait.
type overdue struct {
	enqueued time.Time // of the oldest
	source   int
	level    int // negative: that is not known
	n        int // 0: there are none
}

// wantsOverdue reports whether to look for overdue messages now.
func (g *gate) wantsOverdue(now time.Time, closed string) bool {
	waits := closed == outsideWindows || closed == noSpare
	if g.latestStart == 0 || !waits || g.asking || now.Before(g.askAt) {
		return false
	}
	g.asking = true
	return true
}

// looked notes when to look again: soon, if not all messages have been looked at.
func (g *gate) looked(now time.Time, all bool) {
	g.asking = false
	g.askAt = now.Add(minLookOverdue)
	if all {
		g.askAt = now.Add(min(max(g.latestStart/10, minLookOverdue), maxLookOverdue))
	}
}

// isOverdue reports whether a message is too old to wait.
func (g *gate) isOverdue(now, enqueued time.Time) bool { return now.Sub(enqueued) >= g.latestStart }

// lookForOverdue looks for overdue messages, and has the machine ask for them.
func (r *run) lookForOverdue() {
	found, all, err := r.supply.findOverdue(r.asking, time.Now().Add(-r.gate.latestStart))
	if err != nil {
		r.settings.log.Debug("age of the oldest message is unknown", "err", err)
	}
	r.post(func(now time.Time) []slots.Action {
		r.gate.looked(now, all)
		r.passGate(now)
		if found.n > 0 {
			r.supply.late.Store(&found)
		}
		return r.machine.Overdue(now, found.n)
	})
}

// fetchedOverdue hands back what is not overdue, where that costs no delivery, and looks
// again if there was any.
func (r *run) fetchedOverdue(now time.Time, got []delivery) (kept []delivery) {
	for _, d := range got {
		if r.gate.isOverdue(now, d.Enqueued) || !r.supply.extensions.Load() {
			kept = append(kept, d)
			continue
		}
		r.lastID++
		a := newAttempt(r, r.lastID, d)
		r.attempts[a.id] = a
		a.refuse()
	}
	if len(kept) > 0 {
		r.gate.askAt = now
		r.passGate(now)
	}
	return kept
}

// takeOverdue polls for up to n of the overdue messages that were found. Trouble means that
// there are none.
func (s *supply) takeOverdue(ctx context.Context, n int) []delivery {
	late := s.late.Load()
	if late == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	k := receiverKey{peekChannel, late.source, late.source + 1, late.level, late.level >= 0}
	got, err := s.poll(ctx, k, n)
	if err != nil {
		s.log.Debug("overdue messages not taken", "err", err)
	}
	return got
}

// findOverdue returns the oldest messages that wait since a time or longer, of one source and
// level. All is false if there were too many to look at.
func (s *supply) findOverdue(ctx context.Context, since time.Time) (oldest overdue, all bool, err error) {
	all = true
	var errs []error
	for i := range s.sources {
		found, allHere, err := s.findOverdueOf(ctx, i, since)
		errs = append(errs, err)
		all = all && allHere
		if found.n > 0 && (oldest.n == 0 || found.enqueued.Before(oldest.enqueued)) {
			oldest = found
		}
	}
	return oldest, all, errors.Join(errs...)
}

func (s *supply) findOverdueOf(ctx context.Context, source int, since time.Time) (found overdue, all bool, err error) {
	r, err := s.receiver(ctx, receiverKey{peekChannel, source, source + 1, -1, false})
	if err != nil {
		return found, true, err
	}
	from := s.peeked[source]
	passed := true // all messages before are beyond the bounds of the pool
	for range peekBatches {
		ms, err := r.Peek(ctx, from, peekBatch)
		if err != nil {
			return overdue{}, true, err
		}
		for _, m := range ms {
			if m.Enqueued.After(since) && m.State == client.Active {
				return found, true, nil // and so are those behind it
			}
			in := s.inBounds(m)
			if passed = passed && !in; passed {
				s.peeked[source] = m.SeqNo + 1
			}
			if in && m.State == client.Active && m.LockedUntil.IsZero() && m.RetryAt.IsZero() {
				found.add(m, source)
			}
			from = m.SeqNo + 1
		}
		if len(ms) < peekBatch {
			if found.n == 0 {
				s.peeked[source] = 0 // levels may have changed
			}
			return found, true, nil
		}
		if found.n > 0 {
			return found, true, nil
		}
	}
	return found, false, nil
}

// add counts a message if it is the first, or of the level of the first.
func (o *overdue) add(m *client.Received, source int) {
	level := -1
	if m.Level != nil {
		level = int(*m.Level)
	}
	if o.n == 0 {
		*o = overdue{enqueued: m.Enqueued, source: source, level: level}
	}
	if level == o.level {
		o.n++
	}
}

// inBounds reports whether a message is within the priorities of the pool. Bounds that only
// the queue's policy knows count as none here; the broker applies them.
func (s *supply) inBounds(m *client.Received) bool {
	if m.Level == nil {
		return true
	}
	if low, ok := levelNamed(s.min); ok && *m.Level < low {
		return false
	}
	high, ok := levelNamed(s.max)
	return !ok || *m.Level <= high
}

// levelNamed returns the level that a priority means at any queue.
func levelNamed(p client.Priority) (uint8, bool) {
	switch client.Priority(strings.ToLower(string(p))) {
	case client.Critical:
		return 9, true
	case client.High:
		return 7, true
	case client.Normal:
		return 4, true
	case client.Low:
		return 2, true
	case client.Background:
		return 0, true
	}
	n, err := strconv.ParseUint(string(p), 10, 8)
	return uint8(n), err == nil
}
