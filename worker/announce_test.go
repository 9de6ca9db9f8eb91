// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/client"
)

// emptySource is a source without messages. What is not overridden is not called.
type emptySource struct{ receiver }

func (emptySource) Receive(ctx context.Context, _ int) ([]*client.Received, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}
func (emptySource) Poll(context.Context, int) ([]*client.Received, error) { return nil, nil }

func (emptySource) Extensions() bool { return true }
func (emptySource) Close() error     { return nil }

// toldBroker is the broker's side of announcing.
type toldBroker struct {
	mu     sync.Mutex
	told   []client.PoolReport // guarded by mu
	orders client.PoolOrders   // guarded by mu
	err    error               // guarded by mu
}

func (b *toldBroker) tell(_ context.Context, r client.PoolReport) (client.PoolOrders, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, r)
	return b.orders, b.err
}

func (b *toldBroker) set(change func(*toldBroker)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

// reports returns how many there were, and the last.
func (b *toldBroker) reports() (int, client.PoolReport) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.told) == 0 {
		return 0, client.PoolReport{}
	}
	return len(b.told), b.told[len(b.told)-1]
}

// tolder is a pool without messages that tells a model of a broker, and its log.
func tolder(b *toldBroker) (*Pool, *bytes.Buffer) {
	log := new(bytes.Buffer)
	return &Pool{
		Name: "low", Source: "tasks", Slots: 3, Handler: HandlerFunc(func(context.Context, *Task) error { return nil }),
		Log:  slog.New(slog.NewTextHandler(log, nil)),
		open: func(context.Context, string, *client.ReceiverOptions) (receiver, error) { return emptySource{}, nil },
		tell: b.tell,
	}, log
}

// started runs a pool in a bubble until stop is called.
func started(t *testing.T, p *Pool) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }() // ends with stop
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}
}

func TestPoolObeysOrdersAndTellsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b toldBroker
		p, _ := tolder(&b)
		stop := started(t, p)
		time.Sleep(announceEvery)
		if _, r := b.reports(); r.Name != "low" || r.Slots != 3 || r.Instance == "" || r.Process == 0 || r.Paused || fmt.Sprint(r.Sources) != "[tasks]" {
			t.Errorf("told %+v", r)
		}
		b.set(func(b *toldBroker) { b.orders = client.PoolOrders{Paused: true, Slots: 7, Revision: 5} })
		time.Sleep(announceEvery + time.Millisecond)
		if s := p.Status(); !s.Paused || s.Slots != 7 {
			t.Errorf("status %+v, want a pause and 7 slots", s)
		}
		time.Sleep(announceEvery)
		if _, r := b.reports(); !r.Paused || !r.Obeyed.Paused || r.Obeyed.Slots != 7 || r.Obeyed.Revision != 5 {
			t.Errorf("told %+v, want the orders that it obeys", r)
		}

		// The broker is away: the orders hold, and the broker learns them when it is back.
		b.set(func(b *toldBroker) { b.err, b.orders = errors.New("gone"), client.PoolOrders{} })
		time.Sleep(time.Minute)
		if s := p.Status(); !s.Paused || s.Slots != 7 {
			t.Errorf("without the broker: %+v, want the same orders", s)
		}
		if o := p.wished().orders; o.known || o.spare {
			t.Errorf("orders %+v tell of a broker that is away", o)
		}
		if _, r := b.reports(); r.Obeyed.Revision != 5 {
			t.Errorf("told %+v, want the orders again", r)
		}
		stop()

		// They also hold for another run.
		n, _ := b.reports()
		stop = started(t, p)
		time.Sleep(announceEvery)
		if s := p.Status(); !s.Paused || s.Slots != 7 {
			t.Errorf("in another run: %+v", s)
		}
		if after, r := b.reports(); after == n || r.Obeyed.Revision != 5 || !r.Obeyed.Paused {
			t.Errorf("told %+v in another run", r)
		}
		b.set(func(b *toldBroker) { b.err, b.orders = nil, client.PoolOrders{Revision: 6} })
		time.Sleep(announceRetry + announceEvery)
		if s := p.Status(); s.Paused || s.Slots != 3 {
			t.Errorf("status %+v, want the pool's own setting", s)
		}
		stop()
		if _, r := b.reports(); !r.Leaving || r.Idle != "stopping" {
			t.Errorf("the last report is %+v, want that it leaves", r)
		}
	})
}

// eagerSource has a message for each request, and counts how many were taken.
type eagerSource struct {
	emptySource
	taken *atomic.Int32
}

func (s eagerSource) take() ([]*client.Received, error) {
	return []*client.Received{{SeqNo: client.SeqNo(s.taken.Add(1)), LockedUntil: time.Now().Add(time.Hour)}}, nil
}
func (s eagerSource) Receive(context.Context, int) ([]*client.Received, error)      { return s.take() }
func (s eagerSource) Poll(context.Context, int) ([]*client.Received, error)         { return s.take() }
func (eagerSource) Complete(context.Context, ...*client.Received) error             { return nil }
func (eagerSource) RenewLock(context.Context, *client.Received) error               { return nil }
func (eagerSource) Release(context.Context, *client.Received, map[string]any) error { return nil }

// busyPool is a pool whose broker has messages and answers announcements by answer.
func busyPool(answer teller) (p *Pool, taken *atomic.Int32, log *bytes.Buffer) {
	taken = new(atomic.Int32)
	p, log = tolder(new(toldBroker))
	p.Slots, p.tell = 1, answer
	p.open = func(context.Context, string, *client.ReceiverOptions) (receiver, error) {
		return eagerSource{taken: taken}, nil
	}
	p.Handler = HandlerFunc(func(ctx context.Context, _ *Task) error {
		select {
		case <-time.After(10 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	return p, taken, log
}

// A process of a pool that was paused begins no task when it starts again, however long the
// answer takes that tells it.
func TestPausedPoolBeginsNothingWhenItStarts(t *testing.T) {
	for _, takes := range []time.Duration{0, 50 * time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var resumed atomic.Bool
			p, taken, _ := busyPool(func(ctx context.Context, _ client.PoolReport) (client.PoolOrders, error) {
				time.Sleep(takes)
				if resumed.Load() {
					return client.PoolOrders{Revision: 2}, nil
				}
				return client.PoolOrders{Paused: true, Revision: 1}, nil
			})
			stop := started(t, p)
			time.Sleep(time.Minute)
			if n := taken.Load(); n != 0 {
				t.Errorf("an answer after %v: the paused pool took %d messages", takes, n)
			}
			resumed.Store(true)
			time.Sleep(10 * time.Second)
			if n := taken.Load(); n == 0 {
				t.Errorf("an answer after %v: the resumed pool takes nothing", takes)
			}
			stop()
		})
	}
}

// The broker may be unable to answer for long, or not at all.
func TestPoolBeginsWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		answer teller
		within time.Duration
	}{
		"silent": {func(ctx context.Context, _ client.PoolReport) (client.PoolOrders, error) {
			<-ctx.Done()
			return client.PoolOrders{}, context.Cause(ctx)
		}, orderWait + time.Second},
		"full": {func(context.Context, client.PoolReport) (client.PoolOrders, error) {
			return client.PoolOrders{}, &client.Error{Kind: client.ErrQuota}
		}, time.Second},
		"unknown": {func(context.Context, client.PoolReport) (client.PoolOrders, error) {
			return client.PoolOrders{}, errors.ErrUnsupported
		}, time.Second},
		"nobody is told": {nil, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, taken, log := busyPool(c.answer)
				stop := started(t, p)
				time.Sleep(c.within)
				if taken.Load() == 0 {
					t.Errorf("no message is taken after %v:\n%s", c.within, log)
				}
				stop()
			})
		})
	}
}

// A broker that comes back is asked for orders before it is asked for messages.
func TestOrdersComeFirstAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(70 * time.Second)
		p, taken, _ := busyPool(func(ctx context.Context, _ client.PoolReport) (client.PoolOrders, error) {
			if time.Now().Before(back) {
				<-ctx.Done()
				return client.PoolOrders{}, context.Cause(ctx)
			}
			return client.PoolOrders{Paused: true, Revision: 1}, nil
		})
		open := p.open
		p.open = func(ctx context.Context, entity string, o *client.ReceiverOptions) (receiver, error) {
			if time.Now().Before(back) {
				return nil, errors.New("connection refused")
			}
			return open(ctx, entity, o)
		}
		stop := started(t, p)
		time.Sleep(2 * time.Minute)
		if n := taken.Load(); n != 0 {
			t.Errorf("the paused pool took %d messages", n)
		}
		stop()
	})
}

func TestAnnouncingBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := toldBroker{err: client.ErrUnauthorized}
		p, log := tolder(&b)
		stop := started(t, p)
		time.Sleep(time.Minute)
		if n, _ := b.reports(); n < 10 || n > 20 {
			t.Errorf("%d reports in a minute, want one in five seconds or so", n)
		}
		if n := strings.Count(log.String(), "does not list this pool for now"); n != 1 {
			t.Errorf("explained %d times, want once:\n%s", n, log)
		}
		b.set(func(b *toldBroker) { b.err = nil })
		time.Sleep(announceRetry)
		before, _ := b.reports()
		time.Sleep(10 * announceEvery)
		if n, _ := b.reports(); n-before < 9 || n-before > 11 {
			t.Errorf("%d reports in 10 periods", n-before)
		}
		stop()
	})
}

func TestBrokerWithoutPoolsIsAskedOnce(t *testing.T) {
	for _, err := range []error{fmt.Errorf("announce: %w", errors.ErrUnsupported), client.ErrInvalid} {
		synctest.Test(t, func(t *testing.T) {
			b := toldBroker{err: err}
			p, log := tolder(&b)
			stop := started(t, p)
			time.Sleep(time.Minute)
			stop()
			if n, _ := b.reports(); n != 1 {
				t.Errorf("%v: asked %d times", err, n)
			}
			if n := strings.Count(log.String(), "\n"); n != 1 {
				t.Errorf("%v: %d lines, want one:\n%s", err, n, log)
			}
		})
	}
}

// A broker that knows none of our extensions is not asked again, whatever it says.
func TestForeignBrokerIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := toldBroker{err: errors.New("status 500")}
		p, log := tolder(&b)
		p.open = func(context.Context, string, *client.ReceiverOptions) (receiver, error) { return foreignSource{}, nil }
		stop := started(t, p)
		time.Sleep(time.Minute)
		stop()
		if n, _ := b.reports(); n > 2 { // the first may come before the broker is known
			t.Errorf("asked %d times", n)
		}
		if n := strings.Count(log.String(), "does not list pools"); n != 1 {
			t.Errorf("explained %d times, want once:\n%s", n, log)
		}
	})
}

// foreignSource is a source at a broker that is not ours.
type foreignSource struct{ emptySource }

func (foreignSource) Extensions() bool { return false }

func TestSlotsFollowDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := toldBroker{orders: client.PoolOrders{Known: true, Demand: 10, Waiting: 50, Instances: 3}}
		p, _ := tolder(&b)
		p.Scale = &Scale{Max: 8, CoolDown: 10 * time.Second}
		stop := started(t, p)
		slots := func(after time.Duration, want int) {
			t.Helper()
			time.Sleep(after)
			if got := p.Status().Slots; got != want {
				t.Errorf("%d slots, want %d", got, want)
			}
		}
		slots(time.Second, 4) // a third of the demand
		b.set(func(b *toldBroker) { b.orders.Demand = 100 })
		slots(time.Second, 8)
		b.set(func(b *toldBroker) { b.orders.Demand, b.orders.Waiting = 1, 0 })
		slots(8*time.Second, 8)
		slots(4*time.Second, 0)
		b.set(func(b *toldBroker) { b.orders.Waiting = 1 })
		slots(announceEvery+time.Millisecond, 1)

		// An order comes before demand.
		b.set(func(b *toldBroker) { b.orders.Slots, b.orders.Revision = 20, 1 })
		slots(time.Second, 20)
		b.set(func(b *toldBroker) { b.orders.Slots, b.orders.Revision = 0, 2 })
		slots(time.Second, 1)

		// Without the broker there is at least one slot, to ask for messages.
		b.set(func(b *toldBroker) { b.orders.Waiting = 0 })
		slots(12*time.Second, 0)
		b.set(func(b *toldBroker) { b.err = errors.New("gone") })
		slots(10*time.Second, 1)
		stop()
	})
}

func TestTextOfReportsIsPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"a b": "a b", "a\nb\x1b": "a b", "\xff": "?", strings.Repeat("ä", 1000): strings.Repeat("ä", maxText), "\u202e": "",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
