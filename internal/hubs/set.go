// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/streamserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// root is the directory of all logs.
const root = "hubs"

// opening is how many logs are opened at a time.
const opening = 4

// Options are the settings of a Set; the zero value is ready to use.
type Options struct {
	Journal wal.Options
	Hub     streamserver.Options
	// Files bounds how many files all logs together have open; nil is no bound. The disk is
	// then to be locked by the caller.
	Files *vfs.Files
	// Wrap returns the journal of a log as its hub shall see it; nil is as it is.
	Wrap func(log string, j journal.Journal) journal.Journal
}

// Set is the logs of a broker's hubs.
type Set struct {
	fs   vfs.FS
	opts Options
	log  *slog.Logger

	mu      sync.Mutex
	logs    map[string]*hubLog // guarded by mu; by name
	running context.Context    // guarded by mu; of Run, nil before it
	stopped bool               // guarded by mu; nothing is opened any more
	failed  chan error         // what ends Run
	wg      sync.WaitGroup     // of the logs that run
}

// New returns the logs below fsys, of which none is open.
func New(fsys vfs.FS, opts Options, log *slog.Logger) *Set {
	return &Set{fs: fsys, opts: opts, log: log, logs: map[string]*hubLog{}, failed: make(chan error, 1)}
}

// unavailableError says that the log of a hub could not be opened.
type unavailableError struct {
	Log string
	Err error
}

// Error says which log it is and why.
func (e *unavailableError) Error() string {
	return fmt.Sprintf("the events of the hub are not available: log %s: %v", e.Log, e.Err)
}

// Unwrap returns the reason.
func (e *unavailableError) Unwrap() error { return e.Err }

// errNoLog means that there is no log of that name.
var errNoLog = errors.New("hubs: no such log")

// Load opens the logs that are defined, each with its settings, and finishes removals
// that a crash has interrupted. It returns only what concerns the disk as a whole.
func (s *Set) Load(ctx context.Context, defined map[string]streamserver.Settings) error {
	found, err := s.fs.List(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list the logs of hubs: %w", err)
	}
	for _, name := range found {
		if _, ok := defined[name]; ok {
			continue
		}
		if !s.isMarked(name) && !s.neverUsed(ctx, name) {
			s.log.Warn("a log of events belongs to no hub: remove its directory if it is not needed", "file", root+"/"+name)
			continue
		}
		if err := s.removeFiles(name); err != nil {
			s.log.Error("cannot remove the events of a deleted hub", "file", root+"/"+name, "err", err)
		}
	}
	s.loadAll(ctx, defined, found)
	return context.Cause(ctx)
}

// loadAll opens logs, a few at a time.
func (s *Set) loadAll(ctx context.Context, defined map[string]streamserver.Settings, found []string) {
	var wg sync.WaitGroup
	free := make(chan struct{}, opening)
	for _, name := range slices.Sorted(maps.Keys(defined)) {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			err := fs.ErrNotExist // a log that was there and is gone must not begin anew
			var l *hubLog
			if slices.Contains(found, name) {
				if err := errors.Join(s.pardon(name), s.Keep(name)); err != nil {
					s.log.Error("cannot unmark the log of a hub that is defined", "file", root+"/"+name, "err", err)
				}
				l, err = s.open(ctx, name, defined[name])
			}
			if err != nil {
				s.log.Error("events of a hub are not available", "file", root+"/"+name, "err", err)
				l = &hubLog{name: name, err: err}
			}
			s.mu.Lock()
			s.logs[name] = l
			s.mu.Unlock()
		})
	}
	wg.Wait()
}

// Create makes a new log and serves it. Until Keep is called it is removed by the next Load
// that finds no definition.
func (s *Set) Create(ctx context.Context, name string, set streamserver.Settings) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) {
		return fmt.Errorf("hubs: %q cannot be the name of a log", name)
	}
	s.mu.Lock()
	_, exists := s.logs[name]
	s.mu.Unlock()
	if exists {
		return fmt.Errorf("hubs: log %s: %w", name, fs.ErrExist)
	}
	if files, err := s.fs.List(root + "/" + name); err == nil && len(files) > 0 {
		return fmt.Errorf("hubs: log %s: %w", name, fs.ErrExist)
	}
	if err := streamserver.Fits(s.opts.Hub.Stored, set); err != nil {
		return fmt.Errorf("create the log of a hub: %w", err)
	}
	var l *hubLog
	err := s.begin(name)
	if err == nil {
		l, err = s.open(ctx, name, set)
	}
	if errors.Is(err, vfs.ErrNoSpace) || errors.Is(err, journal.ErrFull) {
		err = fmt.Errorf("%w: %w", streamserver.ErrDiskFull, err)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("create the log of a hub: %w", err), s.removeFiles(name))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errors.Join(streamserver.ErrStopped, l.close(), s.removeFiles(name))
	}
	s.logs[name] = l
	if s.running != nil {
		s.start(l)
	}
	return nil
}

// Configure changes the settings of a log.
func (s *Set) Configure(ctx context.Context, name string, set streamserver.Settings) error {
	h, err := s.Hub(name)
	if err != nil {
		return err
	}
	return h.Configure(ctx, set)
}

// Hub returns the hub whose events a log has.
func (s *Set) Hub(name string) (*streamserver.Hub, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[name]
	switch {
	case l == nil:
		return nil, fmt.Errorf("%w: %s", errNoLog, name)
	case l.err != nil:
		return nil, &unavailableError{name, l.err}
	}
	return l.hub, nil
}

// Names returns the names of the logs, sorted.
func (s *Set) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.logs))
}

// Stats is what a log holds.
type Stats struct {
	wal.Stats
	Damaged uint64 // events that were found to be damaged since the start
}

// Stats returns what a log holds; false if it is not open.
func (s *Set) Stats(name string) (Stats, bool) {
	s.mu.Lock()
	l := s.logs[name]
	s.mu.Unlock()
	if l == nil || l.err != nil {
		return Stats{}, false
	}
	return Stats{l.wal.Stats(), l.damaged.Load()}, true
}
