// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/triagemq/triagemq/internal/clock"
)

const (
	lookAtClock = time.Second
	// tellBehind is how far the wall clock has to be behind for the log to say so.
	tellBehind = time.Second
	// tellRestart is how far it has to be behind for a restart to help: a new process follows
	// stored times up to a day ahead of the wall clock, and not beyond.
	tellRestart = 24 * time.Hour
)

// watchClock looks at the clock every second, so that it soon notices when the wall
// clock is set, and tells the operator what follows from that. It calls stepped when
// the wall clock was ahead.
func watchClock(c *clock.Clock, stepped func(), log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		w := clockWatch{log: log, stepped: stepped}
		w.look(c.State())
		tick := time.NewTicker(lookAtClock)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.look(c.State())
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// clockWatch is what was logged last.
type clockWatch struct {
	log     *slog.Logger
	stepped func()
	last    clock.State
	off     bool // the wall clock is behind
}

func (w *clockWatch) look(st clock.State) {
	if st.Refused > w.last.Refused {
		w.log.Error("the store holds times of the far future, when the wall clock was wrong: messages of then outlive their time to live",
			"ahead", st.Refused.Round(time.Second))
	}
	if by := st.Stepped - w.last.Stepped; by > 0 {
		w.log.Warn("the wall clock was ahead, by sleep or because it was set, and is followed: locks and lives that are over by it have ended",
			"by", by.Round(time.Millisecond))
		w.stepped()
	}
	switch behind := -st.Off; {
	case !w.off && behind >= tellRestart:
		w.off = true
		w.log.Error("the wall clock is far behind the broker's time, which followed it when it was ahead: restart the broker, which then begins with the wall clock",
			"behind", behind.Round(time.Millisecond))
	case !w.off && behind >= tellBehind:
		w.off = true
		w.log.Warn("the wall clock was set back: the broker's time runs slower by a tenth until they agree, and scheduled messages come early meanwhile",
			"behind", behind.Round(time.Millisecond), "agree in", (10 * behind).Round(time.Second))
	case w.off && behind <= 0:
		w.off = false
		w.log.Info("the wall clock and the broker's time agree again")
	}
	w.last = st
}
