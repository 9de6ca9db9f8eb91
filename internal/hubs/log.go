// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/streamserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// hubLog is one log: its journal, and the hub on it. Its fields are set before it is
// known to others, but for those of a log that runs.
type hubLog struct {
	name string
	err  error // why it could not be opened; nothing else is set then
	wal  *wal.WAL
	hub  *streamserver.Hub

	damaged  atomic.Uint64 // events that cannot be read
	reported atomic.Uint64 // how often some were found

	stop context.CancelCauseFunc // nil while it does not run; guarded by Set.mu
	done chan struct{}           // closed when it has stopped; guarded by Set.mu
}

// damageLines bounds how often damage of a log is logged: a segment that is lost may have
// hundreds of thousands of batches.
const damageLines = 100

// open opens a log, or makes it if its directory is empty.
func (s *Set) open(ctx context.Context, name string, set streamserver.Settings) (*hubLog, error) {
	dir := vfs.Sub(s.fs, root+"/"+name)
	if s.opts.Files != nil {
		dir = vfs.OnDemand(dir, s.opts.Files)
	}
	j, err := wal.Open(dir, s.opts.Journal)
	if err != nil {
		return nil, err
	}
	var seen journal.Journal = j
	if s.opts.Wrap != nil {
		seen = s.opts.Wrap(name, j)
	}
	l := &hubLog{name: name, wal: j}
	opts := s.opts.Hub
	opts.OnDamage = func(d streamserver.Damage) {
		l.damaged.Add(uint64(d.Count))
		switch n := l.reported.Add(1); {
		case n == damageLines:
			s.log.Error("more events are damaged and left out, which is not logged any more", "file", root+"/"+name)
			return
		case n > damageLines:
			return
		}
		s.log.Error("events are damaged and left out", "file", root+"/"+name,
			"partition", d.Partition, "first", d.First, "events", d.Count, "err", d.Err)
	}
	if l.hub, err = streamserver.Open(ctx, seen, 0, set, opts); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	s.warnOfLosses(name, l.hub)
	return l, nil
}

// warnOfLosses logs what is missing because a repair has dropped records: which numbers.
func (s *Set) warnOfLosses(name string, h *streamserver.Hub) {
	records, losses := h.Lost()
	if records == 0 {
		return
	}
	file := root + "/" + name
	s.log.Warn("a repair has dropped records of events", "file", file, "records", records)
	for _, lost := range losses {
		switch {
		case lost.End == 0:
			s.log.Warn("a partition is lost: it continues behind the numbers that its events can have had", "file", file, "partition", lost.Partition)
		case lost.Unsure:
			s.log.Warn("events may be lost at the end of a partition: their numbers are not used again", "file", file,
				"partition", lost.Partition, "first", lost.First, "next", lost.End)
		default:
			s.log.Warn("events are lost", "file", file, "partition", lost.Partition,
				"first", lost.First, "last", lost.End-1, "events", lost.End-lost.First)
		}
	}
}

// close closes a log that never ran.
func (l *hubLog) close() error {
	if l.wal == nil {
		return nil
	}
	return l.wal.Close()
}

// errRemoved ends the hub of a log that is removed.
var errRemoved = errors.New("hubs: the hub was deleted")

// run runs a log until ctx ends or something breaks, and closes it. The journal outlives
// the hub, so that what the hub has appended becomes durable.
func (l *hubLog) run(ctx context.Context) error {
	hubCtx, stopHub := context.WithCancelCause(ctx)
	defer stopHub(nil)
	journalCtx, stopJournal := context.WithCancelCause(context.WithoutCancel(ctx))
	ran := make(chan error, 1)
	go func() { // ends with journalCtx; waited for below
		err := l.wal.Run(journalCtx)
		stopHub(err)
		ran <- err
	}()
	err := l.hub.Run(hubCtx)
	stopJournal(errHubEnded)
	if jerr := <-ran; !errors.Is(jerr, errHubEnded) || errors.Is(jerr, journal.ErrFailed) {
		err = errors.Join(err, jerr)
	}
	return errors.Join(err, l.wal.Close())
}

var errHubEnded = errors.New("hubs: the hub has ended")

// start runs a log. mu is held.
func (s *Set) start(l *hubLog) {
	if l.err != nil {
		return
	}
	ctx, stop := context.WithCancelCause(s.running)
	l.stop, l.done = stop, make(chan struct{})
	s.wg.Go(func() { // waited for by Run, and by Remove through done
		defer close(l.done)
		defer stop(nil)
		err := l.run(ctx)
		switch {
		case errors.Is(err, journal.ErrFailed):
			s.fail(l, err)
		case ctx.Err() != nil && (err == nil || errors.Is(err, context.Cause(ctx))):
		case errors.Is(context.Cause(ctx), errRemoved):
			s.log.Warn("a deleted hub did not stop cleanly", "file", root+"/"+l.name, "err", err)
		case errors.Is(err, streamserver.ErrMoved):
			s.log.Error("another process has taken over a hub: its events are not served here any more", "file", root+"/"+l.name, "err", err)
		default:
			s.fail(l, err)
		}
	})
}

// fail makes the failure of a log that of all.
func (s *Set) fail(l *hubLog, err error) {
	select {
	case s.failed <- fmt.Errorf("hub log %s: %w", l.name, err):
	default: // another has failed first
	}
}

// Run serves the logs until ctx ends or one of them fails, which only a disk that fails
// makes it do. It returns when all have stopped and are closed.
func (s *Set) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.running = ctx
	for _, l := range s.logs {
		s.start(l)
	}
	s.mu.Unlock()
	var err error
	select {
	case <-ctx.Done():
		err = context.Cause(ctx)
	case err = <-s.failed:
	}
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	stop(err)
	s.wg.Wait()
	select {
	case failed := <-s.failed: // while they stopped
		return failed
	default:
		return err
	}
}

// Close closes the logs of a Set that never ran.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	var errs []error
	for _, l := range s.logs {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}
