// SPDX-License-Identifier: Apache-2.0

//go:build unix

package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const supported = true

var errUnsupported error // never used here

// errEnded means that the program was ended because the context was.
var errEnded = errors.New("program: ended")

// errNotStarted means that the program did not begin.
var errNotStarted = errors.New("not started")

// pipeDelay bounds the wait for output pipes that a process outside the group holds.
const pipeDelay = time.Second

// process is one run of a program.
type process struct {
	command        []string
	dir            string
	env            []string
	stdin          []byte
	stdout, stderr outputWriter
}

// run runs the program to its end. The error is errNotStarted if it did not begin, errEnded
// if ctx ended before it, else that of [exec.Cmd.Wait]. When run returns, no process of the group is left, except
// that the kernel may still be ending it.
func (p *process) run(ctx context.Context, killAfter func(cause error) time.Duration, onSuspend func(stop, cont func() error)) error {
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Dir, cmd.Env = p.dir, p.env
	cmd.Stdin = bytes.NewReader(p.stdin)
	cmd.Stdout, cmd.Stderr = p.stdout, p.stderr
	cmd.SysProcAttr = attributes()
	cmd.WaitDelay = pipeDelay

	started, ended := make(chan error, 1), make(chan error, 1)
	var g group
	go func() { // ends with the program
		// The kernel kills the program when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			g.lead(cmd.Process.Pid)
		}
		started <- err
		if err == nil {
			ended <- g.wait(cmd)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("%w: %w", errNotStarted, err)
	}
	onSuspend(g.stop, g.resume)

	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended: // both came at once, and the program did its work
		return err
	default:
	}
	g.terminate()
	timer := time.NewTimer(killAfter(context.Cause(ctx)))
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		g.kill()
		<-ended
	}
	return errEnded
}

// group is the process group of a program. A group is named by the number of its
// leader, which the kernel uses again after the leader was waited for. So signals are
// sent only before that.
type group struct {
	mu          sync.Mutex
	leader      int  // 0: not started, or waited for; guarded by mu
	terminating bool // guarded by mu
}

func (g *group) lead(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leader = pid
}

// signal sends signals to every process of the group.
func (g *group) signal(signals ...syscall.Signal) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.signalLocked(signals...)
}

func (g *group) signalLocked(signals ...syscall.Signal) error {
	if g.leader == 0 {
		return os.ErrProcessDone
	}
	var errs []error
	for _, s := range signals {
		errs = append(errs, syscall.Kill(-g.leader, s))
	}
	return errors.Join(errs...)
}

// stop suspends the group. A group that is being ended must not be stopped: it could
// not react to SIGTERM.
func (g *group) stop() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.terminating {
		return os.ErrProcessDone
	}
	return g.signalLocked(syscall.SIGSTOP)
}

func (g *group) resume() error { return g.signal(syscall.SIGCONT) }

// terminate asks the group to end. A stopped process sees SIGTERM when it goes on.
func (g *group) terminate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.terminating = true
	_ = g.signalLocked(syscall.SIGTERM, syscall.SIGCONT) // it has ended, if it fails
}

func (g *group) kill() {
	_ = g.signal(syscall.SIGKILL) // it has ended, if it fails
}

// wait waits for the end of the leader, ends the rest of the group, and returns what
// [exec.Cmd.Wait] says.
func (g *group) wait(cmd *exec.Cmd) error {
	var err error
	if waitExited(cmd.Process.Pid) {
		g.end()
		err = cmd.Wait()
	} else {
		err = cmd.Wait()
		g.end()
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // a process outside the group holds the pipes
	}
	return err
}

// end kills what is left of the group; from now on it gets no signals.
func (g *group) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.signalLocked(syscall.SIGKILL) // nothing is left, if it fails
	g.leader = 0
}
