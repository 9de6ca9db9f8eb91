// SPDX-License-Identifier: Apache-2.0

//go:build unix

package work

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/cli"
)

// supervised returns a supervisor of scripts that does not wait between them.
func supervised(script string) *supervisor {
	return &supervisor{
		command: func() *exec.Cmd { return exec.Command("/bin/sh", "-c", script) },
		log:     slog.New(slog.DiscardHandler),
		grace:   time.Hour,
		wait:    func(context.Context, int) {},
	}
}

func TestSupervisorCountsFailuresUntilItEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := supervised("exit 1")
	var last atomic.Int32
	s.wait = func(_ context.Context, failures int) {
		if last.Store(int32(failures)); failures == 3 {
			cancel()
		}
	}
	if err := s.run(ctx, 1); err != nil || last.Load() != 3 {
		t.Errorf("%v after %d failures", err, last.Load())
	}
}

func TestSupervisorGivesUpOnAWrongCommandLine(t *testing.T) {
	err := supervised("exit 2").run(t.Context(), 3)
	coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err)
	if !ok || coded.ExitCode() != cli.ExitUsage {
		t.Errorf("%v", err)
	}
}

// A process that cannot be started again for now does not end the others.
func TestSupervisorSurvivesAFailedStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := supervised("exit 1")
	command, starts := s.command, 0
	s.command = func() *exec.Cmd {
		if starts++; starts > 1 {
			return exec.Command("/no/such/program")
		}
		return command()
	}
	s.wait = func(_ context.Context, failures int) {
		if failures == 3 {
			cancel()
		}
	}
	if err := s.run(ctx, 1); err != nil || starts != 3 {
		t.Errorf("%v after %d starts, want 3", err, starts)
	}
	starts = 1
	if s.run(t.Context(), 1) == nil {
		t.Error("a first start that fails is no error")
	}
}

func TestSupervisorStopsItsProcesses(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := supervised("exec sleep 1000")
	command := s.command
	var started atomic.Int32
	s.command = func() *exec.Cmd {
		if started.Add(1) == 3 {
			cancel()
		}
		return command()
	}
	if err := s.run(ctx, 3); err != nil {
		t.Error(err)
	}
}

// A process that ignores SIGTERM is killed after the grace.
func TestSupervisorKillsAfterTheGrace(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := supervised("trap '' TERM; kill -TERM $$; while :; do sleep 0.01; done")
	s.grace = time.Millisecond
	command := s.command
	s.command = func() *exec.Cmd { cancel(); return command() }
	if err := s.run(ctx, 1); err != nil {
		t.Error(err)
	}
}

func TestPauseEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	pause(ctx, 1<<20) // returns at once, and without an overflow
}
