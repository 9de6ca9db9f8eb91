// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package process runs the broker's real binary for the suites in test/.
//
// A process that was started ends with the test program at the latest.
package process

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	stopTime = time.Minute // for a process to start, and to stop
	lastPart = 4 << 10     // of a log, which is printed when a process crashes
)

// binary returns the broker to run: the file TRIAGEMQ_BINARY, or one that is
// built.
var binary = sync.OnceValues(func() (string, error) {
	if b := os.Getenv("TRIAGEMQ_BINARY"); b != "" {
		return b, nil
	}
	dir, err := os.MkdirTemp("", "triagemq-test-")
	if err != nil {
		return "", err
	}
	built.Store(&dir)
	b := filepath.Join(dir, "triagemq")
	build := exec.Command("go", "build", "-o", b, "github.com/triagemq/triagemq/cmd/triagemq")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the broker: %w\n%s", err, out)
	}
	return b, nil
})

var built atomic.Pointer[string] // directory of a binary of our own

// Main runs the tests of a package that starts brokers, and removes what was built.
func Main(m *testing.M) {
	code := m.Run()
	if dir := built.Load(); dir != nil {
		os.RemoveAll(*dir)
	}
	os.Exit(code)
}

// Options say how a broker is run.
type Options struct {
	Dir    string   // for its configuration and log
	Config string   // text of triagemq.yaml
	Args   []string // more arguments of serve
	Env    []string // more variables, NAME=value
	Shell  string   // a command of bash that is run before it: ulimit, say
}

// Process is a broker that was started.
type Process struct {
	Addr string        // that it listens on first
	Done chan struct{} // closed when the process has ended
	Err  error         // how it ended; set before Done is closed

	cmd *exec.Cmd
	log string
}

// Start runs a broker and waits until it listens.
func Start(o Options) (*Process, error) {
	program, err := binary()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(o.Dir, "triagemq.yaml")
	if err := os.WriteFile(file, []byte(o.Config), 0o600); err != nil {
		return nil, err
	}
	p := &Process{Done: make(chan struct{}), log: filepath.Join(o.Dir, "log")}
	args := append([]string{"-c", cmp.Or(o.Shell, "true") + ` && exec "$0" "$@"`, program, "serve", "--config", file}, o.Args...)
	p.cmd = exec.Command("bash", args...)
	p.cmd.Env = append(os.Environ(), o.Env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	p.cmd.Stderr = log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	addr := make(chan string, 1)
	go func() { // ends with the process, which Kill and Stop wait for
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if a, ok := strings.CutPrefix(lines.Text(), "  listening on "); ok {
				select {
				case addr <- a:
				default: // only the first is asked for
				}
			}
		}
		p.Err = p.cmd.Wait()
		close(p.Done)
	}()
	select {
	case p.Addr = <-addr:
		return p, nil
	case <-p.Done:
		return nil, fmt.Errorf("the broker does not start: %w\n%s", p.Err, p.LastWords())
	case <-time.After(stopTime):
		p.Kill()
		return nil, fmt.Errorf("the broker does not listen after %v\n%s", stopTime, p.LastWords())
	}
}

// Dead reports whether the process has ended.
func (p *Process) Dead() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// ID is the process id.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Kill ends the process as kill -9 does.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails if it has ended, which Done reports
	<-p.Done
}

// Stop stops the process cleanly and returns how it ended.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.Done:
		return p.Err
	case <-time.After(stopTime):
		p.Kill()
		return fmt.Errorf("it was still running %v after SIGTERM", stopTime)
	}
}

// Log returns the standard error of the process and of those before it on the
// same directory.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// LastWords returns the end of the log, in which a process that crashes says
// why.
func (p *Process) LastWords() string {
	text := p.Log()
	// A trace of all goroutines is long; the reason is at its beginning.
	for _, word := range []string{"\npanic: ", "\nfatal error: ", "runtime: out of memory"} {
		if i := strings.LastIndex(text, word); i >= 0 {
			return text[i:min(len(text), i+lastPart)]
		}
	}
	return text[max(0, len(text)-lastPart):]
}
