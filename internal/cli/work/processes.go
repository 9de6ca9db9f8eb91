// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/config"
)

// maxProcesses bounds --processes against a slip of the finger.
const maxProcesses = 256

// supervisedVariable tells a worker process that another one supervises it.
const supervisedVariable = "TRIAGEMQ_WORK_SUPERVISED"

// isSupervised reports whether this process is one of several, and removes the mark:
// programs that it runs are not.
func isSupervised() bool {
	_, ok := os.LookupEnv(supervisedVariable)
	_ = os.Unsetenv(supervisedVariable) // it fails for no name that is not empty
	return ok
}

// The waits before a process is started again. One that ran for long begins anew.
const (
	firstWait = time.Second
	mostWait  = time.Minute
	ranLong   = time.Minute
)

// supervisor keeps processes running.
type supervisor struct {
	command func() *exec.Cmd
	log     *slog.Logger
	grace   time.Duration // from SIGTERM to SIGKILL
	wait    func(ctx context.Context, failures int)
}

// supervise keeps --processes copies of this command running until ctx ends.
func (f *workFlags) supervise(ctx context.Context, pools []config.Pool) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to start it %d times: %w", f.processes, err)
	}
	s := supervisor{
		command: func() *exec.Cmd {
			cmd := exec.Command(self, os.Args[1:]...)
			cmd.Env = append(os.Environ(), supervisedVariable+"=1")
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			return cmd
		},
		log: f.logger(),
		// The processes end within their own grace; this is for one that hangs.
		grace: 2*longestGrace(pools) + 10*time.Second,
		wait:  pause,
	}
	return s.run(ctx, f.processes)
}

// run keeps n processes running. It ends with ctx, or when one of them says that its
// command line is wrong, which the others will say too.
func (s *supervisor) run(ctx context.Context, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			// The kernel ends a child when the thread that started it ends.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if err := s.keep(ctx, i+1); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// keep keeps one process running. Its error is one that another start does not mend. A
// start that fails later than the first is tried again: the program may just be replaced,
// or the machine have too many processes, and the others must not end for that.
func (s *supervisor) keep(ctx context.Context, number int) error {
	for failures := 0; ; {
		cmd := s.command()
		cmd.SysProcAttr = childAttributes()
		begin := time.Now()
		err := cmd.Start()
		if err != nil && failures == 0 {
			return fmt.Errorf("start worker process %d: %w", number, err)
		}
		if err == nil {
			s.log.Info("worker process started", "process", number, "pid", cmd.Process.Pid)
			err = s.await(ctx, cmd)
		}
		if ctx.Err() != nil {
			return nil
		}
		if cmd.ProcessState.ExitCode() == cli.ExitUsage {
			return cli.Usage(fmt.Errorf("worker process %d: %w", number, err))
		}
		if failures++; time.Since(begin) >= ranLong {
			failures = 1
		}
		s.log.Warn("worker process ended and is started again", "process", number, "state", cmd.ProcessState.String(), "err", err, "failures", failures)
		if s.wait(ctx, failures); ctx.Err() != nil {
			return nil
		}
	}
}

// await waits for the end of a process. When ctx ends it asks the process to stop.
func (s *supervisor) await(ctx context.Context, cmd *exec.Cmd) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the process
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = terminate(cmd.Process) // it has ended, if it fails
	timer := time.NewTimer(s.grace)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		s.log.Error("worker process did not stop and is killed", "pid", cmd.Process.Pid)
		_ = cmd.Process.Kill() // it has ended, if it fails
		return <-ended
	}
}

// pause waits after a number of failures, from 1: twice as long each time, with jitter.
func pause(ctx context.Context, failures int) {
	wait := min(firstWait<<min(failures-1, 10), mostWait)
	timer := time.NewTimer(wait - rand.N(wait/4))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
