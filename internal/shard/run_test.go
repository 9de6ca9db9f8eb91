// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/lifecycle"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

var errTold = errors.New("told to stop")

// Line A12 of the hardening list: a shard that is told to stop waits for the disk
// only as long as it may take.
func TestDrainEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		id := r.define("q", queue.Config{LockFor: time.Minute})
		ctx, stop := context.WithCancelCause(t.Context())
		stack := lifecycle.New(ctx)
		stack.Go("shard", r.s.Run) // and nobody runs the journal: the disk hangs
		var answer error
		for range 3 {
			err := r.s.Send(&Send{
				Bodies: []*message.Message{text("late")}, Copies: []Copy{{ID: id}},
				Done: func(_ []queue.SeqNo, err error) { answer = err },
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		stop(errTold)
		err := stack.Wait(10 * time.Second)
		if !errors.Is(err, ErrUnfinished) || errors.Is(err, lifecycle.ErrOverstayed) {
			t.Errorf("Run returned %v, want %v in time", err, ErrUnfinished)
		}
		if want := "shard: shard 0: shard: stopped before everything was durable: 3 groups wait for the disk"; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if !errors.Is(answer, ErrStopped) {
			t.Errorf("the sender was told %v, want %v", answer, ErrStopped)
		}
	})
}

// With a disk that answers, a stop in good order leaves nobody in doubt.
func TestDrainAnswersWhatWasAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		id := r.define("q", queue.Config{LockFor: time.Minute})
		ctx, stop := context.WithCancelCause(t.Context())
		stack := lifecycle.New(ctx)
		stack.Go("journal", r.wal.Run)
		stack.Go("shard", r.s.Run)
		acked := r.send(id, 4, "in time")
		stop(errTold)
		if err := stack.Wait(10 * time.Second); err != nil {
			t.Errorf("stop: %v", err)
		}
		if !*acked {
			t.Error("what was accepted was not answered")
		}
	})
}
