// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// The bounds of the lines about failures: so many at once, then one in each period. A line
// has so much of the text of an error, or of a panic with its stack.
const (
	failureBurst  = 20
	failurePeriod = time.Second
	failureText   = 1 << 10
	panicText     = 8 << 10
)

// failureLog writes a line for each failure of a handler while they are few. When they are
// many it writes one in each period, with the number of those that were left out.
type failureLog struct {
	log *slog.Logger

	mu      sync.Mutex
	left    int       // lines that may be written now; guarded by mu
	since   time.Time // left was counted then; guarded by mu
	omitted int       // failures since the last line; guarded by mu
}

func newFailureLog(log *slog.Logger, now time.Time) *failureLog {
	return &failureLog{log: log, left: failureBurst, since: now}
}

// admit reports whether there is a line for a failure, and how many were omitted before it.
func (l *failureLog) admit(now time.Time) (omitted int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if periods := int(now.Sub(l.since) / failurePeriod); periods > 0 {
		l.left = min(l.left+periods, failureBurst)
		l.since = l.since.Add(time.Duration(periods) * failurePeriod)
	}
	if l.left == 0 {
		l.omitted++
		return 0, false
	}
	l.left--
	omitted, l.omitted = l.omitted, 0
	return omitted, true
}

// end tells of the failures that were omitted since the last line.
func (l *failureLog) end() {
	l.mu.Lock()
	omitted := l.omitted
	l.omitted = 0
	l.mu.Unlock()
	if omitted > 0 {
		l.log.Warn("further failures of the handler", "omitted", omitted)
	}
}

// logFailure tells of a failure of the handler. What has the error or the panic, and what
// becomes of the message.
func (a *attempt) logFailure(what ...slog.Attr) {
	omitted, ok := a.run.failures.admit(time.Now())
	if !ok {
		return
	}
	level, text := slog.LevelWarn, "handler failed"
	if a.result.panic != "" {
		level, text = slog.LevelError, "handler panicked"
	}
	attrs := append([]slog.Attr{
		slog.Int64("message", int64(a.SeqNo)), slog.String("id", shortened(a.ID, failureText)), slog.String("source", a.Source),
		slog.Uint64("failures", uint64(a.DeliveryCount)+1),
	}, what...)
	if omitted > 0 {
		attrs = append(attrs, slog.Int("omitted", omitted))
	}
	a.run.failures.log.LogAttrs(context.WithoutCancel(a.ctx), level, text, attrs...)
}

// errorAttr is the error of a failure, shortened.
func errorAttr(err error) slog.Attr { return slog.String("err", shortened(err.Error(), failureText)) }

// shortened returns the begin of a text, and says how much of it is missing.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
