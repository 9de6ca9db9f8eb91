// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// commandVariable makes the test program be the command itself, so that tests can
// run the real thing in a process of its own.
const commandVariable = "TRIAGEMQ_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// patience bounds how long a process may take for anything.
const patience = 30 * time.Second

// process is the command in a process of its own.
type process struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err output
	done     chan struct{} // closed when it has ended
}

// startProcess runs the command with args, or the binary in TRIAGEMQ_BINARY; it ends with the test at the latest.
func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(cmp.Or(os.Getenv("TRIAGEMQ_BINARY"), os.Args[0]), args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), commandVariable+"=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		_ = p.cmd.Wait() // the code is in its state
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has ended, most likely
		<-p.done
	})
	return p
}

// code waits for the end and returns the code that it exited with.
func (p *process) code() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%v does not end\n%s%s", p.cmd.Args[1:], p.out.String(), p.err.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// stop ends a broker as an operator would, and returns the code.
func (p *process) stop() int {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	return p.code()
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait returns what the expression matches, its group if it has one, as soon as the
// stream has it.
func (p *process) wait(o *output, expression string) string {
	p.t.Helper()
	want := regexp.MustCompile(expression)
	late := time.After(patience)
	for {
		text, more := o.read()
		if m := want.FindStringSubmatch(text); m != nil {
			return m[len(m)-1]
		}
		select {
		case <-more:
			continue
		case <-p.done:
		case <-late:
		}
		if text, _ := o.read(); want.MatchString(text) {
			continue
		}
		p.t.Fatalf("%v: nothing like %q in\n%s%s", p.cmd.Args[1:], expression, p.out.String(), p.err.String())
	}
}

// output is a stream of a process, as far as it was written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed by the next write; nil if nobody waits
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return o.text.Write(b)
}

func (o *output) read() (text string, more <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more == nil {
		o.more = make(chan struct{})
	}
	return o.text.String(), o.more
}

func (o *output) String() string {
	text, _ := o.read()
	return strings.TrimSpace(text) + "\n"
}

func writeText(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
