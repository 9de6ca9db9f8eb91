// SPDX-License-Identifier: Apache-2.0

//go:build linux

package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program builds the example.
func program(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "homesecurity")
	build := exec.Command("go", "build", "-o", file, "github.com/triagemq/triagemq/examples/homesecurity")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// process is a process of the example.
type process struct {
	*exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how it ended; set before done is closed

	mu   sync.Mutex
	said bytes.Buffer // guarded by mu
}

// Write keeps what the process prints.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.Write(text)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// start runs the example. It is killed when the test ends, if it still runs.
func start(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.Stdout, p.Stderr = p, p
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	p.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process, which the clean-up waits for
		p.err = p.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("%v printed\n%s", args, p.output())
		}
	})
	return p
}

// stop ends the process as Ctrl-C does.
func (p *process) stop(t *testing.T) {
	_ = p.Process.Signal(os.Interrupt) // it may have ended
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		t.Error("the process does not end")
		_ = p.Process.Kill()
		<-p.done
	}
}

// kill ends the process as abruptly as it can be ended.
func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.done
}

// says waits until the process has printed something, and returns the first group.
func (p *process) says(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if m := re.FindStringSubmatch(p.output()); m != nil {
			return m[1]
		}
		select {
		case <-p.done:
			t.Fatalf("the process has ended: %v\n%s", p.err, p.output())
		default:
		}
	}
	t.Fatalf("no %q in\n%s", pattern, p.output())
	return ""
}

// demo is the example while it runs.
type demo struct {
	*process
	page    string // address of the pages
	program string
	Broker  string
	Blobs   string
}

// startDemo runs the example with few homes, whose sensors report every few seconds.
func startDemo(t *testing.T, more ...string) *demo {
	t.Helper()
	d := &demo{program: program(t)}
	args := []string{"demo", "--homes", "300", "--speed", "20", "--instances", "2", "--listen", "127.0.0.1:0"}
	d.process = start(t, d.program, append(args, more...)...)
	d.page = d.says(t, `(http://[0-9.:]+)/operations`)
	resp, err := http.Get(d.page + "/api/demo")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(bufio.NewReader(resp.Body)).Decode(d); err != nil {
		t.Fatal(err)
	}
	return d
}
