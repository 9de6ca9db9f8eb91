// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
)

const (
	// retryFull is how often a full disk is measured again when nothing else,
	// such as a Truncate, gives reason to. To measure writes nothing.
	retryFull = time.Second
	// idleAfter is how long no more than idleBytes must have been appended before a
	// store gives back the space that it keeps ready: owners write a little after
	// everything was consumed.
	idleAfter = 2 * time.Second
	idleBytes = 256 << 10
)

// Run commits whatever is appended until ctx ends, then commits what is left and
// returns the cause. It returns early, with an error that wraps
// journal.ErrFailed, when a write or sync fails: the process must then end. No
// timer is involved: while one batch is synced, the next one gathers.
func (w *WAL) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	w.preallocating.Store(true)
	w.stopping.Store(false)
	wg.Go(func() { w.preallocate(ctx) })
	wg.Go(func() { w.keepMarked(ctx) })
	defer func() {
		w.stopping.Store(true)
		cancel()
		wg.Wait()
		w.preallocating.Store(false)
	}()

	for {
		select {
		case <-w.wake:
			if err := w.Commit(); err != nil && !errors.Is(err, journal.ErrFull) {
				return err
			}
			w.committed.Notify()
		case <-ctx.Done():
			err := w.flush()
			w.notifyWatchers()
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// preallocate makes segments ahead of need, so that no commit waits for one, and
// gives back what an idle store does not need.
func (w *WAL) preallocate(ctx context.Context) {
	for {
		if err := w.refillPool(); err != nil {
			return // Run gets it from w.fail
		}
		w.mu.Lock()
		appended, short := w.log.appended, w.status.Full || w.pool.spent || w.pool.tooLarge > 0 || w.log.stalled
		var retry, idle <-chan time.Time // nil, so never ready, if there is nothing to wait for
		if short {
			retry = time.After(retryFull)
		}
		if w.bloated() && !short {
			idle = time.After(idleAfter)
		}
		w.mu.Unlock()
		select {
		case <-w.low:
		case <-retry:
			w.wake.Notify() // the commit may have been waiting for space, too
		case <-idle:
			if err := w.trimUnless(appended); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// trimUnless trims the pool, unless the store has been in use since then.
func (w *WAL) trimUnless(appended uint64) error {
	w.mu.Lock()
	active := w.log.appended-appended > idleBytes
	w.mu.Unlock()
	if active {
		return nil
	}
	return w.trim()
}

// Commit does one step: it writes and syncs the oldest pending batch, if there
// is one, and calls the watchers. Run is nothing but Commit in a loop; a
// simulator calls it by hand, and then it also does the work of the preallocator of Run,
// which is to have the next segments ready.
func (w *WAL) Commit() error {
	var err error
	if !w.preallocating.Load() {
		err = w.refillPool()
	}
	if err == nil {
		err = w.commit()
	}
	w.notifyWatchers()
	return err
}

// commit is the only place that writes batches.
func (w *WAL) commit() error {
	w.writeToken <- struct{}{}
	defer func() { <-w.writeToken }()

	b, synced, err := w.takeBatch()
	if b == nil {
		return err
	}
	b.finish(synced)
	_, err = b.seg.File.WriteAt(b.buf, int64(b.off))
	if passes(err) { // a file that is opened on demand may find no descriptor
		return w.stall(b)
	}
	if err != nil {
		return w.fail(err)
	}
	if err := b.seg.File.Sync(); err != nil {
		return w.fail(err)
	}
	w.putBatch(b)
	return nil
}

// stall puts a batch back for which the disk has no space after all. That happens
// only where overwriting takes new blocks; a spare that is given up may be enough.
func (w *WAL) stall(b *batch) error {
	given := w.giveUpSpare()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log.writing = nil
	w.log.pending = slices.Insert(w.log.pending, 0, b)
	if given {
		w.wake.Notify()
		return nil
	}
	w.log.stalled = true
	w.review()
	return journal.ErrFull
}

// takeBatch takes the oldest pending batch in hand and returns, with it, up to
// where the log is safe.
func (w *WAL) takeBatch() (*batch, journal.Position, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status.Err != nil {
		return nil, 0, w.status.Err
	}
	if len(w.log.pending) == 0 {
		if w.segs == nil {
			return nil, 0, journal.ErrClosed
		}
		return nil, 0, nil
	}
	b := w.log.pending[0]
	w.log.pending[0] = nil
	w.log.pending = w.log.pending[1:]
	if len(w.log.pending) == 0 {
		w.log.pending = nil
	} else {
		w.wake.Notify() // never blocks, so it may be done here
	}
	w.log.writing = b
	return b, w.log.synced, nil
}

// putBatch records that b is safe.
func (w *WAL) putBatch(b *batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log.writing = nil
	w.log.stalled = false
	w.log.unsynced -= uint64(len(b.buf))
	w.log.synced = b.seg.Position(b.end())
	if b.count > 0 {
		w.status.Durable = b.last
	}
	w.stats.Batches++
	w.stats.Records += uint64(b.count)
	w.stats.Bytes += uint64(len(b.buf))
	if cap(b.buf) <= 2*maxBatch && len(w.log.unused) < maxUnused { // a giant's buffer is not kept
		w.log.unused = append(w.log.unused, b)
	}
	w.review()
}

// flush commits all that is pending now. Watchers learn of it from the next
// Commit, because only that calls them.
func (w *WAL) flush() error {
	w.mu.Lock()
	target := w.log.active.Position(w.log.off)
	w.mu.Unlock()
	for {
		w.mu.Lock()
		done := w.log.synced >= target || len(w.log.pending) == 0 && w.log.writing == nil
		err := w.status.Err
		w.mu.Unlock()
		if err != nil || done {
			return err
		}
		if err := w.commit(); err != nil {
			return err
		}
		w.wake.Notify()
	}
}

// notifyWatchers calls the watchers whose status changed.
func (w *WAL) notifyWatchers() {
	w.writeToken <- struct{}{}
	defer func() { <-w.writeToken }()

	w.mu.Lock()
	status, ended := w.status, w.ended
	w.ended = nil
	w.due = w.due[:0]
	for _, s := range w.watched {
		if s.watch != nil && (s.lastStatus != status || s.changes != w.changes) {
			s.lastStatus, s.changes = status, w.changes
			w.due = append(w.due, s.watch)
		}
	}
	w.mu.Unlock()
	for _, fn := range w.due {
		fn(status)
	}
	status.Err = cmp.Or(status.Err, journal.ErrFenced)
	for _, fn := range ended {
		fn(status)
	}
}
