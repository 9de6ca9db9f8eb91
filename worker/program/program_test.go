// SPDX-License-Identifier: Apache-2.0

//go:build linux

package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

// patience bounds how long anything may take.
const patience = 30 * time.Second

// journal is a log that a test can read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// shell returns a handler that runs a script, and its log.
func shell(script string) (Handler, *journal) {
	j := &journal{}
	return Handler{Command: []string{"/bin/sh", "-c", script}, Log: slog.New(slog.NewTextHandler(j, nil))}, j
}

func task(body string) *worker.Task {
	return &worker.Task{Received: &client.Received{Message: client.Message{ID: "m1", Body: []byte(body)}}, Pool: "p"}
}

// until waits for a condition that another process brings about.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("after %v: not %s", patience, what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// stat returns the state and the group of a process; state 0 if there is none.
func stat(pid int) (state byte, group int) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	rest := string(data[bytes.LastIndexByte(data, ')')+2:])
	var parent int
	if _, err := fmt.Sscanf(rest, "%c %d %d", &state, &parent, &group); err != nil {
		return 0, 0
	}
	return state, group
}

// members returns the states of the living processes of a group.
func members(t *testing.T, group int) string {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var states []byte
	for _, name := range names {
		pid, _ := strconv.Atoi(filepath.Base(name))
		if state, g := stat(pid); g == group && state != 'Z' && state != 'X' && state != 0 {
			states = append(states, state)
		}
	}
	return string(states)
}

// stopped reports whether all processes of a group are. A shell that waits for its
// child to begin a program is in state D; the child is stopped, so the shell is too.
func stopped(t *testing.T, group int) bool {
	t.Helper()
	states := members(t, group)
	return strings.Contains(states, "T") && strings.Trim(states, "TD") == ""
}

// running is a handler at work.
type running struct {
	t       *testing.T
	stop    func() error
	cont    func() error
	cancel  context.CancelCauseFunc
	done    chan error
	pidFile string
	leader  int
}

// start runs a script, which must write its process number to $PIDFILE.
func start(t *testing.T, h Handler) *running {
	t.Helper()
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancelCause(t.Context())
	r := &running{t: t, cancel: cancel, done: make(chan error, 1), pidFile: filepath.Join(t.TempDir(), "pid")}
	h.Env = append(h.Env, "PIDFILE="+r.pidFile)
	ready := make(chan struct{})
	go func() {
		r.done <- h.handle(ctx, task("body"), func(stop, cont func() error) {
			r.stop, r.cont = stop, cont
			close(ready)
		})
	}()
	t.Cleanup(func() {
		cancel(nil)
		if r.leader != 0 {
			if t.Failed() {
				_ = syscall.Kill(-r.leader, syscall.SIGKILL) // it has ended, if it fails
			}
			until(t, "all processes of the group ended", func() bool { return members(t, r.leader) == "" })
		}
		until(t, "all goroutines ended", func() bool { return runtime.NumGoroutine() <= before })
	})
	select {
	case <-ready:
	case err := <-r.done:
		t.Fatal(err)
	}
	return r
}

// group waits until the script wrote its process number.
func (r *running) group() int {
	r.t.Helper()
	until(r.t, "the process number in "+r.pidFile, func() bool {
		data, _ := os.ReadFile(r.pidFile)
		n, err := strconv.Atoi(strings.TrimSpace(string(data)))
		r.leader = n
		return err == nil && bytes.HasSuffix(data, []byte("\n"))
	})
	return r.leader
}

func (r *running) end() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(patience):
		r.t.Fatal("the handler does not return")
		return nil
	}
}

func TestExitCodeDecides(t *testing.T) {
	for _, c := range []struct {
		script string
		want   string // of the error; "" for none
	}{
		{"exit 0", ""},
		{"echo wrong place >&2; exit 65", "program refused the message: wrong place"},
		{"echo busy >&2; exit 75", "program asked for a retry: busy"},
		{"echo first >&2; echo last >&2; exit 3", "program failed with exit status 3: last"},
		{"exit 1", "program failed with exit status 1"},
		{"kill -9 $$", "program failed with signal: killed"},
	} {
		h, _ := shell(c.script)
		err := h.Handle(t.Context(), task(""))
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%s: %v, want %q", c.script, err, c.want)
		}
	}
}

func TestBodyIsStandardInput(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1<<16)
	h, j := shell("wc -c; cat >/dev/null")
	if err := h.Handle(t.Context(), task(big)); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("line=%d", len(big)); !strings.Contains(j.String(), want) {
		t.Errorf("the program did not read %s:\n%s", want, j)
	}
	// A program need not read it.
	h, _ = shell("exit 0")
	if err := h.Handle(t.Context(), task(big)); err != nil {
		t.Error(err)
	}
}

func TestBodyOfAValue(t *testing.T) {
	for _, c := range []struct {
		m    client.Message
		want string
	}{
		{client.Message{}, ""},
		{client.Message{Value: "text"}, "text"},
		{client.Message{Value: map[string]any{"a": 1}}, `{"a":1}`},
		{client.Message{Value: map[any]any{1: 2}}, "map[1:2]"},
		{client.Message{Body: []byte{}, Value: "not used"}, ""},
	} {
		if got := string(body(&c.m)); got != c.want {
			t.Errorf("body of %v = %q, want %q", c.m.Value, got, c.want)
		}
	}
}

func TestOutputIsLoggedLineByLine(t *testing.T) {
	h, j := shell(`printf 'one\r\ntwo'; echo fault >&2`)
	if err := h.Handle(t.Context(), task("")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`msg=output pool=p message=m1 stream=stdout line=one`, `stream=stdout line=two`, `stream=stderr line=fault`,
	} {
		if !strings.Contains(j.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, j)
		}
	}
}

func TestOutputIsBounded(t *testing.T) {
	h, j := shell(`head -c 100000 /dev/zero | tr '\0' x; echo; echo end`)
	h.MaxOutput = 10000
	if err := h.Handle(t.Context(), task("")); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(j.String(), "x"); n != 10000 {
		t.Errorf("%d bytes in the log, want 10000", n)
	}
	if !strings.Contains(j.String(), "bytes=90005") || strings.Contains(j.String(), "line=end") {
		t.Errorf("the log does not say what it left out:\n%s", j.String()[:200])
	}
	if n := strings.Count(j.String(), "line="); n != 3 {
		t.Errorf("%d lines, want 3: two of 4096 bytes and the rest", n)
	}
}

func TestReplyIsStandardOutput(t *testing.T) {
	var got *client.Message
	fail := error(nil)
	h, j := shell("tr a-z A-Z")
	h.Reply = func(_ context.Context, _ *client.Received, m *client.Message) error { got = m; return fail }

	if err := h.Handle(t.Context(), task("hello")); err != nil || got != nil {
		t.Errorf("a message that asks for no reply: %v, reply %v", err, got)
	}
	if !strings.Contains(j.String(), "line=HELLO") {
		t.Errorf("without a reply the output is not in the log:\n%s", j)
	}
	ask := task("hello")
	ask.ReplyTo = "answers"
	if err := h.Handle(t.Context(), ask); err != nil || got == nil || string(got.Body) != "HELLO" {
		t.Errorf("reply %v, %v; want HELLO", got, err)
	}
	fail = fmt.Errorf("the requester left: %w", client.ErrNotFound)
	if err := h.Handle(t.Context(), ask); err != nil {
		t.Errorf("nobody waits for the reply: %v, want the work to be done", err)
	}
	fail = client.ErrQuota
	if err := h.Handle(t.Context(), ask); !errors.Is(err, client.ErrQuota) {
		t.Errorf("the reply cannot be sent: %v", err)
	}
	h.MaxOutput, got = 4, nil
	if err := h.Handle(t.Context(), ask); err == nil || got != nil {
		t.Errorf("the reply is too long: %v, sent %v", err, got)
	}
	h.Command = []string{"/bin/sh", "-c", "echo half; exit 1"}
	if err := h.Handle(t.Context(), ask); err == nil || got != nil {
		t.Errorf("the program failed: %v, sent %v", err, got)
	}
}

// The count goes on where it was: the memory of a stopped program stays.
func TestSuspendAndResume(t *testing.T) {
	h, j := shell(`echo $$ > "$PIDFILE"; i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo count $i; sleep 0.02; done; exit 0`)
	r := start(t, h)
	group := r.group()
	until(t, "counting", func() bool { return strings.Contains(j.String(), "count 2") })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	until(t, "stopped, all of the group", func() bool { return stopped(t, group) })
	select {
	case err := <-r.done:
		t.Fatalf("the handler returned while suspended: %v", err)
	default:
	}
	if err := r.cont(); err != nil {
		t.Fatal(err)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 20; i++ {
		if n := strings.Count(j.String(), fmt.Sprintf("line=\"count %d\"\n", i)); n != 1 {
			t.Errorf("count %d is in the log %d times", i, n)
		}
	}
	if err := r.stop(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("stop after the end: %v, want %v", err, os.ErrProcessDone)
	}
}

func TestStoppedProgramKilledFromOutsideFails(t *testing.T) {
	h, _ := shell(`echo $$ > "$PIDFILE"; while :; do sleep 1; done`)
	r := start(t, h)
	group := r.group()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	until(t, "stopped", func() bool { return stopped(t, group) })
	if err := syscall.Kill(group, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := r.end(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("%v, want the signal", err)
	}
}

func TestEndOfContextTerminates(t *testing.T) {
	h, j := shell(`trap 'echo asked to end; exit 0' TERM; echo $$ > "$PIDFILE"; while :; do sleep 0.01; done`)
	r := start(t, h)
	r.group()
	r.cancel(worker.ErrStopping)
	if err := r.end(); !errors.Is(err, worker.ErrStopping) {
		t.Errorf("%v, want the cause %v, whatever the exit code", err, worker.ErrStopping)
	}
	if !strings.Contains(j.String(), "asked to end") {
		t.Error("the program did not see SIGTERM")
	}
}

func TestEndOfContextTerminatesASuspendedProgram(t *testing.T) {
	h, j := shell(`trap 'echo asked to end; exit 0' TERM; echo $$ > "$PIDFILE"; while :; do sleep 0.01; done`)
	h.KillAfter = time.Hour
	r := start(t, h)
	group := r.group()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	until(t, "stopped", func() bool { return stopped(t, group) })
	r.cancel(worker.ErrLockLost)
	if err := r.end(); !errors.Is(err, worker.ErrLockLost) {
		t.Errorf("%v, want %v", err, worker.ErrLockLost)
	}
	if !strings.Contains(j.String(), "asked to end") {
		t.Error("the program did not see SIGTERM")
	}
}

func TestProgramThatIgnoresTermIsKilled(t *testing.T) {
	h, _ := shell(`trap '' TERM; sleep 1000 & echo $$ > "$PIDFILE"; while :; do sleep 0.01; done`)
	h.KillAfter = time.Millisecond
	r := start(t, h)
	r.group()
	r.cancel(worker.ErrTimeout)
	if err := r.end(); !errors.Is(err, worker.ErrTimeout) {
		t.Errorf("%v, want %v", err, worker.ErrTimeout)
	}
	// start's clean-up finds no process of the group.
}

// A program that is being ended must not be stopped: it could not end.
func TestNoStopAfterTerm(t *testing.T) {
	h, j := shell(`trap 'echo asked; read x < "$FIFO"; exit 0' TERM; echo $$ > "$PIDFILE"; while :; do sleep 0.01; done`)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	h.Env = []string{"FIFO=" + fifo}
	h.KillAfter = time.Hour
	r := start(t, h)
	r.group()
	r.cancel(worker.ErrStopping)
	until(t, "asked to end", func() bool { return strings.Contains(j.String(), "asked") })
	if err := r.stop(); !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("stop: %v, want %v", err, os.ErrProcessDone)
	}
	if err := os.WriteFile(fifo, []byte("go on\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := r.end(); !errors.Is(err, worker.ErrStopping) {
		t.Error(err)
	}
}

func TestForkedProcessesEndWithTheProgram(t *testing.T) {
	h, _ := shell(`(trap '' TERM HUP; while :; do sleep 1000; done) & sleep 1000 & echo $$ > "$PIDFILE"; exit 0`)
	r := start(t, h)
	r.group()
	if err := r.end(); err != nil {
		t.Errorf("%v, want success: the program itself ended with 0", err)
	}
}

// A process of another session holds the pipes; the task ends without it.
func TestProcessOutsideTheGroupDoesNotHoldTheTask(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "outside")
	h, _ := shell(`setsid sh -c 'echo $$ > "$OUTSIDE"; exec sleep 1000' & while ! [ -s "$OUTSIDE" ]; do sleep 0.01; done; exit 0`)
	h.Env = []string{"OUTSIDE=" + pidFile}
	if err := h.Handle(t.Context(), task("")); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the process outside the group: %v", err)
	}
}

func TestContextThatHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(worker.ErrStopping)
	file := filepath.Join(t.TempDir(), "ran")
	h, _ := shell("touch " + file)
	if err := h.Handle(ctx, task("")); !errors.Is(err, worker.ErrStopping) {
		t.Error(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the program ran")
	}
}

func TestCheck(t *testing.T) {
	for _, h := range []Handler{{}, {Command: []string{""}}, {Command: []string{"no-such-program-anywhere"}}, {Command: []string{"true"}, MaxOutput: -1}} {
		if h.Check() == nil || h.Handle(t.Context(), task("")) == nil {
			t.Errorf("%v is accepted", h.Command)
		}
	}
	if err := (Handler{Command: []string{"true"}}).Check(); err != nil {
		t.Error(err)
	}
	err := (Handler{Command: []string{"/no/such/program"}}).Handle(t.Context(), task(""))
	if !errors.Is(err, os.ErrNotExist) || !errors.Is(err, worker.ErrUnavailable) {
		t.Errorf("%v, want %v and %v", err, os.ErrNotExist, worker.ErrUnavailable)
	}
}

// What the kernel would not start is refused before a message is taken for it.
func TestCheckFindsWhatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.sh", "#!/bin/sh\nexit 0\n", 0o755)
	write("flags.sh", "#! /bin/sh -e\n", 0o755)
	write("twice.sh", "#!"+good+"\n", 0o755)
	write("secret", "\x7fELF\x00", 0o111)
	t.Chdir(dir)
	for _, c := range []struct{ name, dir, path, want string }{
		{name: "missing", path: "./nope.sh", want: "no such file"},
		{name: "directory", path: dir, want: "is not a file"},
		{name: "not executable", path: write("plain.sh", "#!/bin/sh\n", 0o644), want: "cannot be executed"},
		{name: "no interpreter", path: write("perl", "#!/no/such/perl -w\n", 0o755), want: `the interpreter "/no/such/perl"`},
		{name: "Windows lines", path: write("crlf.sh", "#!/bin/sh\r\nexit 0\r\n", 0o755), want: `the interpreter "/bin/sh\r"`},
		{name: "itself", path: write("self.sh", "#!"+filepath.Join(dir, "self.sh")+"\n", 0o755), want: "too many"},
		{name: "text", path: write("text.sh", "echo hello\n", 0o755), want: "must begin with #!"},
		{name: "empty", path: write("empty", "", 0o755), want: "must begin with #!"},
		{name: "no directory", path: good, dir: "/no/such/directory", want: "working directory"},
		{name: "file as directory", path: good, dir: good, want: "is not a directory"},
		{name: "below another directory", path: "./good.sh", dir: "/", want: "no such file"},
		{name: "script", path: "./good.sh"},
		{name: "below its directory", path: "./good.sh", dir: dir},
		{name: "in PATH", path: "true", dir: "/"},
		{name: "with flags", path: "./flags.sh"},
		{name: "script of a script", path: "./twice.sh"},
		{name: "binary", path: "/proc/self/exe"},
		{name: "unreadable", path: "./secret"},
	} {
		err := Handler{Command: []string{c.path}, Dir: c.dir}.Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A pool that stops does not wait long; a program that it left behind would go on.
func TestKillAfterIsBoundedWhenThePoolStops(t *testing.T) {
	h := Handler{KillAfter: time.Hour}
	if got := h.killAfter(worker.ErrTimeout); got != time.Hour {
		t.Errorf("after a time-out %v, want what is set", got)
	}
	if got := h.killAfter(fmt.Errorf("the end: %w", worker.ErrStopping)); got != maxKillAtStop {
		t.Errorf("at the end %v, want %v", got, maxKillAtStop)
	}
}
