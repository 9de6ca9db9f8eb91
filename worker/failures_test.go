// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/worker"
)

// lines is a log that a test can read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// logged has a pool write a log, without the lines for debugging.
func logged(p *worker.Pool) *lines {
	l := new(lines)
	p.Log = slog.New(slog.NewTextHandler(l, nil))
	return l
}

func TestEachFailureIsALineInTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"retry":       {errors.New("no route"), `err="no route" "retry after"=1s`},
		"later":       {worker.RetryAfter(time.Minute, errors.New("busy")), `"retry after"=1m0s`},
		"dead letter": {worker.DeadLetter("Odd", errors.New("not a number")), `outcome="dead letter"`},
		"discard":     {worker.Discard(errors.New("too late")), `outcome=discarded`},
		"unavailable": {worker.ErrUnavailable, `outcome="handed back"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newModelBroker(1)
				p := handled(t, b, func(context.Context, *worker.Task) error { return c.err })
				log := logged(p)
				b.send("a", "x", 4)
				run(t, p)
				time.Sleep(500 * time.Millisecond)
				got := log.String()
				if n := strings.Count(got, "handler failed"); n != 1 || !strings.Contains(got, c.want) {
					t.Errorf("%d lines about one failure, want one with %s:\n%s", n, c.want, got)
				}
			})
		})
	}
}

// A thousand failures a second must not fill the disk of the log. None is forgotten.
func TestLinesAboutFailuresAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		long := errors.New(strings.Repeat("x", 1<<20))
		p := handled(t, b, func(context.Context, *worker.Task) error { return long })
		p.Slots, p.Retry = 8, worker.Constant(0)
		log := logged(p)
		for i := range 20 {
			b.send("a", fmt.Sprint(i), 4)
		}
		stop := run(t, p)
		time.Sleep(10 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		got := log.String()
		count := strings.Count(got, `msg="handler failed"`)
		if count < 20 || count > 35 || len(got) > 100<<10 {
			t.Errorf("%d lines in 10 s, %d bytes", count, len(got))
		}
		for _, m := range regexp.MustCompile(`omitted=(\d+)`).FindAllStringSubmatch(got, -1) {
			n, _ := strconv.Atoi(m[1])
			count += n
		}
		if failed := int(p.Status().Failed); count != failed || failed < 1000 {
			t.Errorf("%d failures, the log tells of %d", failed, count)
		}
	})
}

// What a handler needs may be away for long. That is not the fault of the messages.
func TestUnavailableHandlerCostsNoDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		var runs atomic.Int32
		var away atomic.Bool
		away.Store(true)
		p := handled(t, b, func(context.Context, *worker.Task) error {
			runs.Add(1)
			if away.Load() {
				return fmt.Errorf("no database: %w", worker.ErrUnavailable)
			}
			return nil
		})
		log := logged(p)
		for range 20 {
			b.send("a", "x", 4)
		}
		run(t, p)
		time.Sleep(500 * time.Millisecond)
		if s := p.Status(); s.Idle != "its handler is unavailable" || s.HandedBack != 1 || s.Failed != 0 {
			t.Errorf("status %+v", s)
		}
		time.Sleep(10 * time.Minute)
		if n := runs.Load(); n < 10 || n > 20 {
			t.Errorf("the handler ran %d times in 10 minutes, want a pause that grows to a minute", n)
		}
		away.Store(false)
		time.Sleep(time.Minute)
		wantCompleted(t, p, 20, "with the handler")
		for n := range 20 {
			if m := b.message(n); m.failures != 0 {
				t.Errorf("message %d has failed %d times, want 0", n, m.failures)
			}
		}
		// The next time begins with a short pause.
		away.Store(true)
		runs.Store(0)
		b.send("a", "x", 4)
		time.Sleep(5 * time.Second)
		if n := runs.Load(); n != 3 {
			t.Errorf("the handler ran %d times in 5 s, want 3:\n%s", n, log)
		}
	})
}

// picky is a handler that says whether it can work.
type picky struct {
	worker.HandlerFunc
	err error
}

func (p picky) Check() error { return p.err }

func TestHandlerIsCheckedBeforeTheFirstMessage(t *testing.T) {
	b := newModelBroker(1)
	p := modelPool(b)
	none := errors.New("no such program")
	p.Handler = picky{func(context.Context, *worker.Task) error { return nil }, none}
	b.send("a", "x", 4)
	if err := p.Run(t.Context()); !errors.Is(err, worker.ErrInvalid) || !errors.Is(err, none) || b.opened != 0 {
		t.Errorf("%v, after opening %d receivers", err, b.opened)
	}
}
