// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"time"

	"github.com/triagemq/triagemq/client"
)

// Bounds of how long a lock lasts by our clock, which may differ from the broker's. The
// broker's answer to a renewal is what counts.
const (
	minLock = time.Second
	maxLock = time.Hour
)

// noteLock takes over the end of the lock that the broker told at now.
func (a *attempt) noteLock(now, until time.Time) {
	left := min(max(until.Sub(now), minLock), maxLock)
	a.lockEnd.Store(int64(now.Sub(a.run.began) + left))
}

func (a *attempt) lockLeft() time.Duration {
	return time.Duration(a.lockEnd.Load()) - time.Since(a.run.began)
}

// hold renews the lock until the attempt is done, due or given up. It returns whether
// the lock was lost. Until then it also watches the timeout of a handler that runs.
func (a *attempt) hold(done <-chan struct{}, due <-chan time.Time) (lost bool) {
	ctx, cancel := context.WithCancel(a.run.life)
	renewed := make(chan error, 1)
	renewing := false
	defer func() {
		cancel()
		if renewing {
			<-renewed // it uses the message
		}
	}()
	renew := time.NewTimer(a.untilRenewal())
	defer renew.Stop()
	timeout := time.NewTimer(0)
	defer timeout.Stop()
	a.resetTimeout(timeout)
	for {
		select {
		case <-done:
			return lost
		case <-due:
			return lost
		case <-a.givenUp:
			return lost
		case <-a.changed:
			a.resetTimeout(timeout)
		case <-timeout.C:
			if a.timedOut() {
				a.endFromKeeper(ErrTimeout)
			} else {
				a.resetTimeout(timeout)
			}
		case <-renew.C:
			renewing = true
			a.run.wg.Go(func() { renewed <- a.renew(ctx) })
		case err := <-renewed:
			renewing = false
			switch {
			case err == nil:
				a.renewed.Store(true)
				a.noteLock(time.Now(), a.LockedUntil)
				renew.Reset(a.untilRenewal())
			case errors.Is(err, client.ErrLockLost) || a.lockLeft() <= 0:
				lost = true
				if !a.handling {
					return lost
				}
				a.endFromKeeper(ErrLockLost)
			default:
				renew.Reset(min(a.lockLeft()/4+time.Millisecond, renewPause))
			}
		}
	}
}

// renewAtLeast bounds the time between renewals. If our clock is behind the broker's, a
// lock seems to last longer than it does, and nothing else tells.
const renewAtLeast = 10 * time.Second

// firstRenewal is when a lock is renewed for the first time, if the broker keeps renewed locks
// through a restart. So that is true of work that takes longer, and short work pays nothing.
const firstRenewal = time.Second

func (a *attempt) untilRenewal() time.Duration {
	wait := min(a.lockLeft()/2, renewAtLeast)
	if !a.renewed.Load() && a.from.Extensions() {
		wait = min(wait, firstRenewal)
	}
	return wait
}

// renewPause is the longest wait before a renewal is tried again after trouble.
const renewPause = time.Second

// renew asks the broker for a longer lock. It does not take longer than the lock.
func (a *attempt) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.lockLeft())
	defer cancel()
	return a.from.RenewLock(ctx, a.Received)
}

// timedOut reports whether the handler has run for Pool.Timeout, without the time that
// it waited in place.
func (a *attempt) timedOut() bool {
	waited, waits := a.suspendedFor(time.Now())
	return a.run.pool.Timeout > 0 && !waits && time.Since(a.began)-waited >= a.run.pool.Timeout
}

// resetTimeout sets the timer to when the handler has run for Pool.Timeout.
func (a *attempt) resetTimeout(timer *time.Timer) {
	timer.Stop()
	waited, waits := a.suspendedFor(time.Now())
	if a.run.pool.Timeout > 0 && !waits && a.ctx.Err() == nil && a.handling {
		timer.Reset(max(a.run.pool.Timeout-(time.Since(a.began)-waited), 0))
	}
}

// save keeps a checkpoint in the broker, which renews the lock with it.
//
// A handler saves as its context ends, because it was preempted or the pool stops: that does
// not end the request, only what else ends ctx does.
func (a *attempt) save(ctx context.Context, state []byte) error {
	over := ctx
	ctx, cancel := context.WithTimeoutCause(a.run.life, max(a.lockLeft(), minLock), ErrLockLost)
	defer cancel()
	stop := context.AfterFunc(over, func() {
		if a.ctx.Err() == nil {
			cancel()
		}
	})
	defer stop()
	until, err := a.from.SaveState(ctx, a.Received, state)
	if errors.Is(err, client.ErrLockLost) {
		return errors.Join(ErrLockLost, err)
	}
	if err == nil {
		a.renewed.Store(true)
		a.noteLock(time.Now(), until)
	}
	return err
}
