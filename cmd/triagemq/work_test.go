// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/cli"
)

const workQueues = "queues: [{name: tasks}, {name: more}]"

func TestWorkTellsAllFaults(t *testing.T) {
	c := startCLI(t, workQueues)
	o := c.with("", "work", "--slots", "-1", "--window", "Fry", "--min-run", "3s", "--cool-down", "1s", "--env", "A", "--latest-start", "1h", "--exec")
	if o.code != cli.ExitUsage {
		t.Errorf("code %d", o.code)
	}
	wantParts(t, o.err, "QUEUE: is missing", "--exec: is missing", "--slots: is negative", "--min-run and --preempt-budget need --preempt",
		"--scale-min and --cool-down need --scale-max", `--env: "A" is not NAME=value`, `"Fry" is not a day`)
	c.fails(cli.ExitUsage, "no-such-program", "work", "tasks", "--exec", "no-such-program")
	c.fails(cli.ExitUsage, "--processes: 0 is outside", "work", "tasks", "--processes", "0", "--exec", "true")
	c.fails(cli.ExitUsage, "the file says that", "work", "-f", "pools.yaml", "--slots", "3")
	c.fails(cli.ExitUsage, "the file names the queues", "work", "-f", "pools.yaml", "tasks")
	c.fails(cli.ExitUsage, `f.yaml:1:28: pools[0].slots: expected a whole number`, "work", "-f", c.file("pools: [{source: a, slots: many}]"))
	c.fails(cli.ExitUsage, `pools[0].exec: is missing`, "work", "-f", c.file("pools: [{source: a, slots: many}]"))
	c.fails(cli.ExitUsage, `"soon" is not a time`, "work", "tasks", "--retry", "soon", "--exec", "true")
	if !strings.Contains(c.do("work", "--example"), "pools:") {
		t.Error("--example prints no pools")
	}
}

// A program that cannot be started costs no message a delivery.
func TestWorkRefusesAProgramThatCannotStart(t *testing.T) {
	c := startCLI(t, workQueues)
	s := newScripts(t)
	c.do("send", "tasks", "--body", "hello")
	s.write("plain.sh", "#!/bin/sh\n")
	s.write("pools.yaml", "pools: [{source: tasks, exec: [./nope.sh]}]")
	for _, args := range [][]string{
		{"tasks", "--exec", "./nope.sh"},
		{"tasks", "--exec", s.path("plain.sh")},
		{"tasks", "--dir", s.path("nowhere"), "--exec", "true"},
		{"-f", s.path("pools.yaml")},
	} {
		p := startProcess(t, append([]string{"work"}, args...)...)
		if code := p.code(); code != cli.ExitUsage {
			t.Errorf("%v: code %d, want %d\n%s", args, code, cli.ExitUsage, p.err.String())
		}
	}
	if got := c.do("peek", "tasks", "--json"); !strings.Contains(got, `"deliveryCount":0`) {
		t.Errorf("the message has been delivered:\n%s", got)
	}
}

// Failures are in the log without -v. A program that is away for a while, as when it is
// replaced, costs no deliveries.
func TestWorkTellsOfFailures(t *testing.T) {
	c := startCLI(t, workQueues)
	s := newScripts(t)
	s.write("handle.sh", "#!/bin/sh\n[ -e "+s.path("mended")+" ] || exit 7\n")
	if err := os.Chmod(s.path("handle.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.do("send", "tasks", "--body", "hello")
	p := startProcess(t, "work", "tasks", "--retry", "10ms", "--exec", s.path("handle.sh"))
	p.wait(&p.err, `msg="handler failed"`)
	p.wait(&p.err, "exit status 7")
	s.write("mended", "")
	until(t, p, "handled", func() bool { return strings.Contains(c.do("pool", "list", "--json"), `"completed": 1`) })

	if err := os.Rename(s.path("handle.sh"), s.path("away.sh")); err != nil {
		t.Fatal(err)
	}
	c.do("send", "tasks", "--body", "hello")
	p.wait(&p.err, "its handler is unavailable")
	if err := os.Rename(s.path("away.sh"), s.path("handle.sh")); err != nil {
		t.Fatal(err)
	}
	until(t, p, "handled", func() bool { return strings.Contains(c.do("pool", "list", "--json"), `"completed": 2`) })
	if failed := strings.Count(p.err.String(), `outcome="handed back"`); failed == 0 {
		t.Errorf("no line about the program that was away:\n%s", p.err.String())
	}
	if code := p.stop(); code != 0 {
		t.Errorf("code %d\n%s", code, p.err.String())
	}
}

// scripts is a directory for programs and what they write.
type scripts struct {
	t   *testing.T
	dir string
}

func newScripts(t *testing.T) scripts {
	t.Helper()
	return scripts{t, t.TempDir()}
}

func (s scripts) path(name string) string { return filepath.Join(s.dir, name) }

func (s scripts) text(name string) string {
	data, _ := os.ReadFile(s.path(name))
	return string(data)
}

func (s scripts) write(name, text string) { s.t.Helper(); writeText(s.t, s.path(name), text) }

// until waits for what other processes bring about.
func until(t *testing.T, p *process, what string, is func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !is() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-p.done:
			t.Fatalf("the worker ended before %s:\n%s", what, p.err.String())
		case <-deadline:
			t.Fatalf("after %v: not %s:\n%s", patience, what, p.err.String())
		}
	}
}

func TestExitCodesSettle(t *testing.T) {
	c := startCLI(t, workQueues)
	s := newScripts(t)
	s.write("handle.sh", `
read -r word
case $word in
refuse) echo "not a word" >&2; exit 65 ;;
again) echo x >> `+s.path("again")+`; [ "$TRIAGEMQ_DELIVERY_COUNT" -ge 2 ] || exit 75 ;;
fail) [ "$TRIAGEMQ_DELIVERY_COUNT" -ge 1 ] || exit 1 ;;
esac
echo "$word with $TRIAGEMQ_PROPERTY_COLOUR by $1" >> `+s.path("done")+`
`)
	for _, word := range []string{"refuse", "again", "fail", "plain"} {
		c.do("send", "tasks", "--body", word, "--property", "colour=red")
	}
	p := startProcess(t, "work", "tasks", "--retry", "10ms", "--exec", "sh", s.path("handle.sh"), "--slots")
	until(t, p, "three done", func() bool { return strings.Count(s.text("done"), "\n") == 3 })
	for _, want := range []string{"again with red by --slots\n", "fail with red by --slots\n", "plain with red by --slots\n"} {
		if !strings.Contains(s.text("done"), want) {
			t.Errorf("no %q in\n%s", want, s.text("done"))
		}
	}
	if n := strings.Count(s.text("again"), "x"); n != 3 {
		t.Errorf("the message was tried %d times, want 3", n)
	}
	until(t, p, "a dead letter", func() bool { return strings.Contains(c.do("deadletter", "list", "tasks", "--json"), "ProgramRejected") })
	if dead := c.do("deadletter", "list", "tasks", "--json"); !strings.Contains(dead, "not a word") {
		t.Errorf("the dead letter does not say why: %s", dead)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("code %d\n%s", code, p.err.String())
	}
}

func TestPoolsOfAFile(t *testing.T) {
	c := startCLI(t, workQueues)
	s := newScripts(t)
	s.write("pools.yaml", `
pools:
  - source: tasks
    exec: [sh, -c, 'cat >> `+s.path("tasks")+`']
    slots: 2
  - name: rest
    sources: [more]
    exec: [sh, -c, 'echo "$TRIAGEMQ_POOL $COLOUR" >> `+s.path("more")+`']
    env: {COLOUR: blue}
`)
	c.do("send", "tasks", "--body", "hello")
	c.do("send", "more", "--body", "x")
	p := startProcess(t, "work", "-f", s.path("pools.yaml"))
	until(t, p, "both handled", func() bool { return s.text("tasks") == "hello" && s.text("more") == "rest blue\n" })
	if code := p.stop(); code != 0 {
		t.Errorf("code %d\n%s", code, p.err.String())
	}
}

// A queue that does not exist yet is waited for.
func TestWorkWaitsForItsQueue(t *testing.T) {
	c := startCLI(t, workQueues)
	s := newScripts(t)
	p := startProcess(t, "work", "later", "--exec", "sh", "-c", "cat > "+s.path("out"))
	p.wait(&p.err, "later")
	c.do("queue", "create", "later")
	c.do("send", "later", "--body", "hello")
	until(t, p, "handled", func() bool { return s.text("out") == "hello" })
	if code := p.stop(); code != 0 {
		t.Errorf("code %d\n%s", code, p.err.String())
	}
}

// Of several queues those are served that exist; one may be deleted and made again.
func TestWorkServesTheQueuesThatExist(t *testing.T) {
	c := startCLI(t, workQueues)
	s := newScripts(t)
	p := startProcess(t, "work", "later", "tasks", "more", "--preempt", "--exec", "sh", "-c", "cat >> "+s.path("out"))
	done := ""
	handles := func(queue string) {
		t.Helper()
		done += queue + "\n"
		c.do("send", queue, "--body", queue+"\n")
		until(t, p, "handled "+queue, func() bool { return s.text("out") == done })
	}
	handles("tasks")
	for range 2 {
		c.do("queue", "create", "later")
		handles("later")
		handles("more")
		c.do("queue", "delete", "later")
		handles("tasks")
	}
	if code := p.stop(); code != 0 {
		t.Errorf("code %d\n%s", code, p.err.String())
	}
}

// A worker outlives its queue, and serves the next one of that name.
func TestWorkOutlivesItsQueue(t *testing.T) {
	c := startCLI(t, workQueues)
	s := newScripts(t)
	p := startProcess(t, "work", "tasks", "--exec", "sh", "-c", "cat >> "+s.path("out"))
	done := ""
	for i := range 3 {
		done += fmt.Sprintln(i)
		c.do("send", "tasks", "--body", fmt.Sprintln(i))
		until(t, p, "handled", func() bool { return s.text("out") == done })
		c.do("queue", "delete", "tasks")
		p.wait(&p.err, "waiting for a source that does not exist yet")
		c.do("queue", "create", "tasks")
	}
	until(t, p, "listed", func() bool { return strings.Contains(c.do("pool", "list"), "tasks") })
	if code := p.stop(); code != 0 {
		t.Errorf("code %d\n%s", code, p.err.String())
	}
}

// Each session of a queue is one program's at a time, in order, also while some fail.
func TestWorkTakesSessions(t *testing.T) {
	c := startCLI(t, "queues: [{name: steps, requiresSession: true}]")
	s := newScripts(t)
	s.write("handle.sh", `
cd `+s.dir+`
mkdir "busy-$TRIAGEMQ_SESSION" || { echo "two at $TRIAGEMQ_SESSION" >> wrong; exit 1; }
read -r step
sleep 0.01
rmdir "busy-$TRIAGEMQ_SESSION"
[ "$step" != 2 ] || [ "$TRIAGEMQ_DELIVERY_COUNT" -ge 1 ] || exit 75
echo "$step" >> "session-$TRIAGEMQ_SESSION"
`)
	for step := range 5 {
		for _, session := range []string{"a", "b", "c"} {
			c.do("send", "steps", "--session", session, "--body", fmt.Sprintln(step))
		}
	}
	p := startProcess(t, "work", "steps", "--sessions", "--session-idle", "100ms", "--slots", "2", "--retry", "20ms", "--exec", "sh", s.path("handle.sh"))
	for _, session := range []string{"a", "b", "c"} {
		until(t, p, "session "+session+" done", func() bool { return s.text("session-"+session) == "0\n1\n2\n3\n4\n" })
	}
	if wrong := s.text("wrong"); wrong != "" {
		t.Error(wrong)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("code %d\n%s", code, p.err.String())
	}
	c.fails(cli.ExitUsage, "--preempt: does not combine with sessions", "work", "steps", "--sessions", "--preempt", "--exec", "true")
	c.fails(cli.ExitUsage, "--session-idle: needs sessions", "work", "steps", "--session-idle", "1s", "--exec", "true")
}

// groupState returns the states of the living processes of a group.
func groupState(t *testing.T, group int) string {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	states := ""
	for _, name := range names {
		data, _ := os.ReadFile(name) // it may have ended meanwhile
		at := bytes.LastIndexByte(data, ')')
		if at < 0 {
			continue
		}
		f := strings.Fields(string(data[at+1:]))
		if len(f) > 2 && f[2] == strconv.Itoa(group) && f[0] != "Z" && f[0] != "X" {
			states += f[0]
		}
	}
	return states
}

// Four slots are full of programs that count. A high message arrives and is done while
// they are not; one of them is stopped meanwhile and counts on afterwards. None begins twice.
func TestPreemptionOfPrograms(t *testing.T) {
	c := startCLI(t, workQueues)
	s := newScripts(t)
	s.write("handle.sh", `
cd `+s.dir+`
read -r name
echo $$ > "$name.pid"
echo begin >> "$name"
if [ "$TRIAGEMQ_PRIORITY" = high ]; then
	while ! [ -e high.go ]; do sleep 0.01; done
	echo end >> "$name"
	exit 0
fi
i=0
while ! [ -e finish ]; do
	i=$((i + 1))
	echo "count $i" >> "$name"
	sleep 0.01
done
echo "end" >> "$name"
`)
	low := []string{"low1", "low2", "low3", "low4"}
	for _, name := range low {
		c.do("send", "tasks", "--body", name, "--priority", "low")
	}
	p := startProcess(t, "work", "tasks", "--slots", "4", "--preempt", "--exec", "sh", s.path("handle.sh"))
	groups := map[string]int{}
	for _, name := range low {
		until(t, p, name+" counting", func() bool { return strings.Contains(s.text(name), "count 3\n") })
		groups[name], _ = strconv.Atoi(strings.TrimSpace(s.text(name + ".pid")))
	}
	stopped := func() (names []string) {
		for _, name := range low {
			if states := groupState(t, groups[name]); strings.Contains(states, "T") && strings.Trim(states, "TD") == "" {
				names = append(names, name)
			}
		}
		return names
	}

	c.do("send", "tasks", "--body", "high", "--priority", "high")
	until(t, p, "the high program begun", func() bool { return s.text("high") == "begin\n" })
	until(t, p, "one low program stopped", func() bool { return len(stopped()) == 1 })
	victim := stopped()[0]
	at := s.text(victim)
	s.write("high.go", "")
	until(t, p, "the high program ended", func() bool { return s.text("high") == "begin\nend\n" })
	for _, name := range low {
		if strings.Contains(s.text(name), "end") {
			t.Errorf("%s ended before the high message", name)
		}
	}
	until(t, p, "the stopped program counting on", func() bool { return len(s.text(victim)) > len(at) })
	s.write("finish", "")
	for _, name := range low {
		until(t, p, name+" ended", func() bool { return strings.HasSuffix(s.text(name), "end\n") })
	}
	if code := p.stop(); code != 0 {
		t.Errorf("code %d\n%s", code, p.err.String())
	}
	for _, name := range low {
		want := "begin\n"
		n := strings.Count(s.text(name), "count")
		for i := range n {
			want += fmt.Sprintf("count %d\n", i+1)
		}
		if got := s.text(name); got != want+"end\n" {
			t.Errorf("%s did not count once from 1 to %d:\n%s", name, n, got)
		}
		if states := groupState(t, groups[name]); states != "" {
			t.Errorf("%s has left processes behind: %s", name, states)
		}
	}
	c.fails(cli.ExitFailed, "no message received", "receive", "tasks", "--wait", "1ms")
}

// Several processes work at the same queue; one that is killed is started again.
func TestProcessesAreKeptRunning(t *testing.T) {
	c := startCLI(t, workQueues)
	s := newScripts(t)
	p := startProcess(t, "work", "tasks", "--processes", "2", "--exec", "sh", "-c", "cat >> "+s.path("out"))
	started := regexp.MustCompile(`worker process started.* pid=(\d+)`)
	pids := func() (out []int) {
		for _, m := range started.FindAllStringSubmatch(p.err.String(), -1) {
			pid, _ := strconv.Atoi(m[1])
			out = append(out, pid)
		}
		return out
	}
	until(t, p, "two processes", func() bool { return len(pids()) == 2 })
	if err := syscall.Kill(pids()[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, p, "a third process", func() bool { return len(pids()) == 3 })
	c.do("send", "tasks", "--body", "hello")
	until(t, p, "handled", func() bool { return s.text("out") == "hello" })
	if code := p.stop(); code != 0 {
		t.Errorf("code %d\n%s", code, p.err.String())
	}
	for _, pid := range pids() {
		if groupState(t, pid) != "" {
			t.Errorf("process %d is left behind", pid)
		}
	}
}

// A command line that the processes refuse is not tried again and again.
func TestProcessesEndWithAWrongCommandLine(t *testing.T) {
	startCLI(t, workQueues)
	p := startProcess(t, "work", "tasks", "--processes", "2", "--exec", "no-such-program")
	if code := p.code(); code != cli.ExitUsage {
		t.Errorf("code %d\n%s", code, p.err.String())
	}
}

// The script of examples/preemption counts to the end, each message once.
func TestExampleScriptCounts(t *testing.T) {
	c := startCLI(t, workQueues)
	c.do("send", "tasks", "--body", "low-1", "--priority", "low")
	c.do("send", "tasks", "--body", "high", "--priority", "high")
	p := startProcess(t, "work", "tasks", "--env", "STEPS=3", "--env", "PAUSE=0.01", "--exec", "../../examples/preemption/count.sh")
	p.wait(&p.err, `line="low-1 3"`)
	if code := p.stop(); code != 0 {
		t.Errorf("code %d\n%s", code, p.err.String())
	}
	for _, line := range []string{"high 1", "low-1 1", "low-1 2", "low-1 3"} {
		if n := strings.Count(p.err.String(), `line="`+line+`"`); n != 1 {
			t.Errorf("%q is in the log %d times:\n%s", line, n, p.err.String())
		}
	}
}

// A paused pool stops its programs where they are; resumed, they go on.
func TestPauseStopsPrograms(t *testing.T) {
	c := startCLI(t, workQueues)
	s := newScripts(t)
	s.write("handle.sh", `
cd `+s.dir+`
echo $$ > pid
i=0
while ! [ -e finish ]; do
	i=$((i + 1))
	echo "$i" >> count
	sleep 0.01
done
`)
	c.do("send", "tasks", "--body", "x")
	p := startProcess(t, "work", "tasks", "--name", "low", "--exec", "sh", s.path("handle.sh"))
	until(t, p, "counting", func() bool { return strings.Contains(s.text("count"), "3\n") })
	group, _ := strconv.Atoi(strings.TrimSpace(s.text("pid")))
	until(t, p, "announced", func() bool { return strings.Contains(c.do("pool", "list"), "low") })

	c.do("pool", "pause", "low")
	until(t, p, "stopped", func() bool {
		states := groupState(t, group)
		return strings.Contains(states, "T") && strings.Trim(states, "TD") == ""
	})
	at := s.text("count")
	c.do("pool", "resume", "low")
	until(t, p, "counting on", func() bool { return len(s.text("count")) > len(at) })
	s.write("finish", "")
	if code := p.stop(); code != 0 {
		t.Errorf("code %d\n%s", code, p.err.String())
	}
	for i, line := range strings.Fields(s.text("count")) {
		if line != strconv.Itoa(i+1) {
			t.Fatalf("line %d is %s: the count began again", i+1, line)
		}
	}
}

// A process of a paused pool that starts again begins nothing.
func TestPausedPoolStaysPausedWhenItsProcessStartsAgain(t *testing.T) {
	c := startCLI(t, workQueues)
	s := newScripts(t)
	start := func() *process {
		return startProcess(t, "work", "tasks", "--name", "low", "--slots", "2", "--exec", "sh", "-c", "echo begun >> "+s.path("out"))
	}
	p := start()
	until(t, p, "announced", func() bool { return strings.Contains(c.do("pool", "list"), "low") })
	c.do("pool", "pause", "low")
	p.stop()
	for range 10 {
		c.do("send", "tasks", "--body", "x")
	}
	for range 5 {
		p = start()
		until(t, p, "announced", func() bool { return strings.Contains(c.do("pool", "list", "--processes"), "paused") })
		p.stop()
	}
	if got := s.text("out"); got != "" {
		t.Errorf("the paused pool has begun tasks:\n%s", got)
	}
	p = start()
	c.do("pool", "resume", "low")
	until(t, p, "ten handled", func() bool { return strings.Count(s.text("out"), "begun") == 10 })
	if code := p.stop(); code != 0 {
		t.Errorf("code %d\n%s", code, p.err.String())
	}
}
