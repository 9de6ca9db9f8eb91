// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
)

// hanging is a journal on a disk that hangs: Read and Truncate end with their context, or
// when the disk is back.
type hanging struct {
	journal.Journal
	back chan struct{}
}

func (j *hanging) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-j.back:
	}
	return context.Cause(ctx)
}

func (j *hanging) Read(ctx context.Context, reads []journal.Read) {
	err := j.wait(ctx)
	for i := range reads {
		reads[i].Err = err
	}
}

func (j *hanging) Truncate(ctx context.Context, _ journal.Claim, _ journal.Retain) error {
	return j.wait(ctx)
}

// stopping is what ends the context of Run: it has a deadline when it has ended.
type stopping struct {
	context.Context
	by time.Time
}

func (c stopping) Deadline() (time.Time, bool) { return c.by, c.Err() != nil }

// TestRunEndsThoughTheDiskHangs: neither an engine that has failed nor one that must
// stop waits for bodies that no caller gets, nor, beyond its deadline, for a
// truncation.
func TestRunEndsThoughTheDiskHangs(t *testing.T) {
	read := func(h *counterHost) {
		id := h.define()
		ref, err := h.tx.StoreOne([]byte("body"))
		if err != nil {
			h.tx.Stop(err)
		}
		h.add(id, 0, 1, ref)
		h.tx.Fetch(&bodyFetch{ref: ref, done: func(*bodyFetch) {}})
	}
	truncate := func(h *counterHost) { h.e.truncate(journal.Retain{}) }
	stop := func(_ *rig, cancel func()) { cancel() }
	fence := func(r *rig, _ func()) {
		if _, _, err := r.wal.Claim(r.t.Context(), 0); err != nil {
			r.t.Error(err)
		}
	}
	for _, tt := range []struct {
		name string
		do   func(h *counterHost)
		end  func(r *rig, cancel func())
		want error
	}{
		{"a read, fenced", read, fence, journal.ErrFenced},
		{"a read, stopped", read, stop, nil},
		{"a truncation, fenced", truncate, fence, journal.ErrFenced},
		{"a truncation, stopped", truncate, stop, ErrUnfinished},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Options{})
				r.opts.Go = nil
				j := &hanging{back: make(chan struct{})}
				r.wrap = func(w journal.Journal) journal.Journal { j.Journal = w; return j }
				r.crash(1)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				walCtx, stopWAL := context.WithCancel(t.Context())
				journalEnded, ended := make(chan error, 1), make(chan error, 1)
				go func() { journalEnded <- r.wal.Run(walCtx) }()
				go func() { ended <- r.e.Run(stopping{ctx, time.Now().Add(time.Minute)}) }()
				r.do(tt.do, nil)
				synctest.Wait()
				tt.end(r, cancel)
				select {
				case err := <-ended:
					if !errors.Is(err, tt.want) {
						t.Errorf("Run: %v, want %v", err, tt.want)
					}
				case <-time.After(time.Hour):
					t.Error("Run has not returned in an hour")
					close(j.back)
					<-ended
				}
				stopWAL()
				<-journalEnded
			})
		})
	}
}
