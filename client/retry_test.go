// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// idle is a client without a connection, for what needs none.
func idle(t *testing.T, retryFor time.Duration) *Client {
	c := &Client{options: (&Options{RetryTimeout: retryFor}).withDefaults()}
	c.life, c.end = context.WithCancelCause(t.Context())
	return c
}

var errAgain = errors.New("trouble that passes")

func TestRetryOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		tries := 0
		err := idle(t, time.Minute).retry(t.Context(), func(*outage) error {
			tries++
			if time.Since(begin) < 30*time.Second {
				return errAgain
			}
			return nil
		})
		if err != nil {
			t.Errorf("retry: %v, want success after the outage", err)
		}
		if tries < 8 || tries > 40 {
			t.Errorf("tried %d times in 30s, want growing pauses", tries)
		}
	})
}

func TestRetryGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err := idle(t, 10*time.Second).retry(t.Context(), func(*outage) error { return errAgain })
		if !errors.Is(err, errAgain) {
			t.Errorf("retry: %v, want %v", err, errAgain)
		}
		if took := time.Since(begin); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("gave up after %v, want about 10s", took)
		}
	})
}

func TestRetryNotAtAll(t *testing.T) {
	tries := 0
	err := idle(t, -1).retry(t.Context(), func(*outage) error { tries++; return errAgain })
	if !errors.Is(err, errAgain) || tries != 1 {
		t.Errorf("retry: %v after %d tries, want %v after 1", err, tries, errAgain)
	}
}

func TestRetryStopsAtADisposition(t *testing.T) {
	tries := 0
	err := idle(t, time.Minute).retry(t.Context(), func(*outage) error {
		tries++
		return &statusError{status: 404, description: "no such queue"}
	})
	if !errors.Is(err, ErrNotFound) || tries != 1 {
		t.Errorf("retry: %v after %d tries, want %v after 1", err, tries, ErrNotFound)
	}
}

// What waits for messages may wait through any number of outages, each of which
// is short.
func TestRetryCountsEachOutageOnItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outages := 0
		err := idle(t, 5*time.Second).retry(t.Context(), func(o *outage) error {
			o.reset(time.Now())
			if outages++; outages == 50 {
				return nil
			}
			time.Sleep(time.Minute) // virtual
			return errAgain
		})
		if err != nil {
			t.Errorf("after %d outages: %v, want success", outages, err)
		}
	})
}

func TestRetryEndsWithContextAndClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		err := idle(t, time.Hour).retry(ctx, func(*outage) error { return errAgain })
		if !errors.Is(err, why) {
			t.Errorf("retry: %v, want %v", err, why)
		}
		c := idle(t, time.Hour)
		time.AfterFunc(time.Second, func() { c.end(ErrClosed) })
		err = c.retry(t.Context(), func(*outage) error { return errAgain })
		if !errors.Is(err, ErrClosed) {
			t.Errorf("retry on a closed client: %v, want %v", err, ErrClosed)
		}
	})
}
