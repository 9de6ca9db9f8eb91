// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/triagemq/triagemq/client"
)

// The waits between attempts while the broker is away or a source does not exist.
const (
	firstTroubleWait = 100 * time.Millisecond
	lastTroubleWait  = 3 * time.Second
)

// patiently repeats get until it has messages, ctx ends, or it is useless to go on. The
// first failure of a row is logged.
func (s *supply) patiently(ctx context.Context, get func() ([]delivery, error)) ([]delivery, error) {
	for wait := firstTroubleWait; ; wait = min(2*wait, lastTroubleWait) {
		got, err := get()
		switch {
		case len(got) > 0:
			return got, nil
		case ctx.Err() != nil || errors.Is(err, context.Canceled):
			return nil, nil
		case useless(err):
			return nil, err
		case s.skips(err):
		case err != nil:
			s.waiting(err)
		default:
			wait = firstTroubleWait // nothing came, which is no trouble
		}
		if !sleep(ctx, wait) {
			return nil, nil
		}
	}
}

// waiting says, once for each reason, that the pool waits.
func (s *supply) waiting(err error) {
	text := "waiting for the broker"
	if errors.Is(err, client.ErrNotFound) {
		text = "waiting for a source that does not exist yet"
	}
	if old := s.trouble.Swap(&text); old == nil || *old != text {
		s.log.Warn(text, "sources", s.names(), "err", err)
	}
}

// recovered says that the pool works again.
func (s *supply) recovered() {
	if old := s.trouble.Swap(nil); old != nil {
		s.log.Info("the pool works again", "sources", s.names())
	}
}

// idle says what the pool waits for; empty if it does not.
func (s *supply) idle() string {
	if text := s.trouble.Load(); text != nil {
		return *text
	}
	return ""
}

func (s *supply) names() string {
	var names []string
	for _, source := range s.sources {
		names = append(names, source.Entity)
	}
	return strings.Join(names, ", ")
}

// useless reports whether trying again cannot help.
func useless(err error) bool {
	for _, known := range []error{
		client.ErrAddress, client.ErrUnauthorized, client.ErrNotAllowed, client.ErrInvalid, client.ErrClosed,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// sleep waits; it returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
