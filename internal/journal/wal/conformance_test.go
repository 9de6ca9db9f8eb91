// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/journaltest"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/vfs"
)

func TestConformance(t *testing.T) {
	t.Run("stepped in memory", func(t *testing.T) {
		journaltest.Run(t, func(t *testing.T) journaltest.Store { return newStepped() })
	})
	t.Run("running in memory", func(t *testing.T) {
		journaltest.Run(t, func(t *testing.T) journaltest.Store {
			s := newStepped()
			return &runningInMemory{running{s.stepped}, s.memory}
		})
	})
	t.Run("running on disk", func(t *testing.T) {
		journaltest.Run(t, func(t *testing.T) journaltest.Store { return &running{stepped{fs: vfs.OS(t.TempDir())}} })
	})
	t.Run("small, with files that are opened on demand", func(t *testing.T) {
		journaltest.Run(t, func(t *testing.T) journaltest.Store {
			return &running{stepped{fs: vfs.OnDemand(vfs.OS(t.TempDir()), vfs.NewFiles(0)), small: true}}
		})
	})
}

// stepped is a store whose journal commits when Settle is called.
type stepped struct {
	fs    vfs.FS
	small bool
	w     *WAL
	stop  func()
}

func (s *stepped) Open(t *testing.T) journal.Journal {
	t.Helper()
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	if s.w != nil {
		if err := s.w.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		if _, err := repair.Verify(s.fs); err != nil {
			t.Fatalf("verify: %v", err)
		}
	}
	s.w = openWith(t, s.fs, Options{SegmentSize: 16 << 10, Unsynced: 64 << 10, Small: s.small})
	return s.w
}

func (s *stepped) Settle(t *testing.T) { commit(t, s.w) }

// memory is a disk that can be filled and stopped.
type memory struct{ fault *vfs.Fault }

func (m memory) Fill()  { m.fault.SetFree(0) }
func (m memory) Clear() { m.fault.SetFree(-1) }

func (m memory) Stall() (resume func()) { return m.Hang() }

// Hang has every call to the disk wait, but for those that ask.
func (m memory) Hang() (resume func()) {
	gate := make(chan struct{})
	m.fault.Before(func(vfs.Op, string) error {
		<-gate
		return nil
	})
	return func() {
		close(gate)
		m.fault.Before(nil)
	}
}

// steppedInMemory is a store that commits when Settle is called, on a disk that can
// be filled.
type steppedInMemory struct {
	stepped
	memory
}

// Stall has nothing to do: nothing commits.
func (s *steppedInMemory) Stall() (resume func()) { return func() {} }

func newStepped() *steppedInMemory {
	fault := vfs.NewFault(vfs.NewMem())
	return &steppedInMemory{stepped{fs: fault}, memory{fault}}
}

// runningInMemory is one that commits by itself.
type runningInMemory struct {
	running
	memory
}

// running is a store whose journal commits by itself.
type running struct{ stepped }

func (s *running) Open(t *testing.T) journal.Journal {
	t.Helper()
	s.stepped.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	w := s.w
	go func() { done <- w.Run(ctx) }() // owned by the store, which waits for it in stop
	for !w.preallocating.Load() {
		runtime.Gosched()
	}
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
	}
	t.Cleanup(s.stop)
	return s.w
}

// Settle steps beside Run, which is what Claim and Truncate do too.
func (s *running) Settle(t *testing.T) {
	t.Helper()
	if err := s.w.refillPool(); err != nil {
		t.Fatalf("refillPool: %v", err)
	}
	if err := s.w.flush(); err != nil {
		t.Fatalf("flush: %v", err)
	}
	s.w.notifyWatchers()
}
