// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	errSignal = errors.New("signal")
	errDisk   = errors.New("disk on fire")
)

// diary records which layer stopped when. Layers stop one after another, so it
// needs no lock: each write happens before the close of that layer's done.
type diary struct{ lines []string }

// layer runs until it is stopped, then takes some time.
func (d *diary) layer(name string, takes time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		d.lines = append(d.lines, name+" stopping: "+context.Cause(ctx).Error())
		<-time.After(takes)
		d.lines = append(d.lines, name+" returned")
		return context.Cause(ctx)
	}
}

func TestLayersStopTopDownOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s, d := New(ctx), new(diary)
		s.Go("journal", d.layer("journal", time.Second))
		s.Go("shards", d.layer("shards", time.Second))
		s.Go("amqp", d.layer("amqp", time.Second))
		cancel(errSignal)
		if err := s.Wait(time.Minute); err != nil {
			t.Errorf("Wait: %v, want nil", err)
		}
		want := []string{
			"amqp stopping: signal", "amqp returned",
			"shards stopping: signal", "shards returned",
			"journal stopping: signal", "journal returned",
		}
		if !slices.Equal(d.lines, want) {
			t.Errorf("stopped in the order\n%v, want\n%v", d.lines, want)
		}
	})
}

func TestLayerThatFailsTakesTheOthersDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := New(t.Context()), new(diary)
		s.Go("journal", func(context.Context) error { time.Sleep(time.Hour); return errDisk })
		s.Go("amqp", d.layer("amqp", 0))
		err := s.Wait(time.Minute)
		if !errors.Is(err, errDisk) || err.Error() != "journal: disk on fire" {
			t.Errorf("Wait: %v, want journal: %v, once", err, errDisk)
		}
		if want := []string{"amqp stopping: journal: disk on fire", "amqp returned"}; !slices.Equal(d.lines, want) {
			t.Errorf("the others saw %v, want %v", d.lines, want)
		}
	})
}

func TestLayerThatReturnsNilUnaskedIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t.Context())
		s.Go("admin", func(context.Context) error { return nil })
		if err := s.Wait(time.Minute); !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "admin") {
			t.Errorf("Wait: %v, want %v with the name", err, errEnded)
		}
	})
}

func TestLayerThatExceedsItsTimeIsNamedAndAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s, d := New(ctx), new(diary)
		s.Go("journal", d.layer("journal", 0))
		s.Go("amqp", func(context.Context) error { time.Sleep(time.Hour); return nil })
		cancel(errSignal)
		began := time.Now()
		err := s.Wait(10 * time.Second)
		if !errors.Is(err, ErrStopTimeout) || !strings.Contains(err.Error(), "amqp") || strings.Contains(err.Error(), "journal") {
			t.Errorf("Wait: %v, want %v with the name of amqp", err, ErrStopTimeout)
		}
		if got := time.Since(began); got != 10*time.Second {
			t.Errorf("Wait took %v, want 10s", got)
		}
		if len(d.lines) != 2 {
			t.Errorf("the layer below saw %v, want it to be stopped too", d.lines)
		}
		time.Sleep(time.Hour) // let the straggler go, or the bubble would not end
	})
}

func TestNoGraceWaitsAsLongAsItTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s, d := New(ctx), new(diary)
		s.Go("amqp", d.layer("amqp", 24*time.Hour))
		cancel(errSignal)
		if err := s.Wait(0); err != nil {
			t.Errorf("Wait: %v, want nil", err)
		}
	})
}

func TestErrorsWhileStoppingAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := New(ctx)
		ends := func(why func(context.Context) error) func(context.Context) error {
			return func(ctx context.Context) error { <-ctx.Done(); return why(ctx) }
		}
		s.Go("journal", ends(func(ctx context.Context) error { return errors.Join(context.Cause(ctx), errDisk) }))
		s.Go("shards", ends(func(ctx context.Context) error { return fmt.Errorf("run: %w", errors.Join(context.Cause(ctx), nil)) }))
		s.Go("admin", ends(func(ctx context.Context) error { return ctx.Err() }))
		s.Go("amqp", ends(func(context.Context) error { return errDisk }))
		cancel(errSignal)
		err := s.Wait(time.Minute)
		if want := "amqp: disk on fire\njournal: signal\ndisk on fire"; err == nil || err.Error() != want {
			t.Errorf("Wait: %v, want %s", err, want)
		}
	})
}

// When the disk hangs, every layer above it
// exceeds its time. The grace period is for all of them together.
func TestGraceIsForAllLayersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := New(ctx)
		hangs := func(context.Context) error { time.Sleep(time.Hour); return nil }
		for _, name := range []string{"journal", "shards", "broker", "amqp"} {
			s.Go(name, hangs)
		}
		cancel(errSignal)
		began := time.Now()
		err := s.Wait(10 * time.Second)
		if got := time.Since(began); got != 10*time.Second {
			t.Errorf("Wait took %v, want 10s", got)
		}
		for _, name := range []string{"journal", "shards", "broker", "amqp"} {
			if !errors.Is(err, ErrStopTimeout) || !strings.Contains(err.Error(), name) {
				t.Errorf("Wait: %v, want %v with the name of %s", err, ErrStopTimeout, name)
			}
		}
		time.Sleep(time.Hour)
	})
}

// Each layer has some of the time, however long those above it take.
func TestLayerBelowOneThatHangsHasTimeToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s, d := New(ctx), new(diary)
		s.Go("journal", d.layer("journal", 4*time.Second))
		s.Go("amqp", func(context.Context) error { time.Sleep(time.Hour); return nil })
		cancel(errSignal)
		err := s.Wait(10 * time.Second)
		if err == nil || strings.Contains(err.Error(), "journal") || len(d.lines) != 2 {
			t.Errorf("Wait: %v, the journal saw %v; want it to have stopped", err, d.lines)
		}
		time.Sleep(time.Hour)
	})
}

// A layer that waits for a layer below it is late, but returns.
func TestLayerThatIsLateIsNotNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := New(ctx)
		gaveUp := make(chan struct{})
		s.Go("shards", func(ctx context.Context) error { <-ctx.Done(); close(gaveUp); return nil })
		s.Go("amqp", func(context.Context) error { <-gaveUp; return nil })
		cancel(errSignal)
		if err := s.Wait(10 * time.Second); err != nil {
			t.Errorf("Wait: %v, want nil", err)
		}
	})
}

// A layer has its deadline as soon as it is stopped.
func TestLayerKnowsItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := New(ctx)
		began := time.Now()
		has := func(name string, want time.Duration) {
			s.Go(name, func(ctx context.Context) error {
				if at, ok := ctx.Deadline(); ok {
					t.Errorf("%s runs with a deadline, %v", name, at)
				}
				ctx, stop := context.WithCancelCause(ctx) // as layers do that have parts
				defer stop(nil)
				<-ctx.Done()
				if at, ok := ctx.Deadline(); !ok || at.Sub(began) != want {
					t.Errorf("%s has %v, %v to stop, want %v", name, at.Sub(began), ok, want)
				}
				return nil
			})
		}
		has("journal", 9*time.Second)
		has("shards", 4500*time.Millisecond) // the layer above was quick
		has("amqp", 4500*time.Millisecond)
		synctest.Wait()
		cancel(errSignal)
		if err := s.Wait(10 * time.Second); err != nil {
			t.Errorf("Wait: %v, want nil", err)
		}
	})
}
