// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/examples/process"
)

//go:embed triagemq.yaml
var definitions []byte // the hub

// demo runs everything on this machine: a broker, the sensors and the instances as
// processes of their own, and the web server.
type demo struct {
	settings
	ctx     context.Context // ends with the demo, and the processes with it
	program string          // this one
	out     *lineWriter
	wg      sync.WaitGroup // of the processes

	mu        sync.Mutex
	instances map[string]*exec.Cmd // that run, by name; guarded by mu
	types     map[string]bool      // of sensors that report; guarded by mu
	started   int                  // instances so far; guarded by mu
}

// runDemo runs until ctx ends. Its data is in a directory that it removes.
func runDemo(ctx context.Context, s settings, out io.Writer) error {
	if err := s.check(); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "triagemq-homesecurity-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // the demo's own, and empty of value when it ends

	fmt.Fprintln(out, "Building and starting a broker ...")
	broker := process.Broker{Binary: cmp.Or(os.Getenv("TRIAGEMQ_BINARY"), filepath.Join(dir, "triagemq")), Data: filepath.Join(dir, "data")}
	if broker.Binary == filepath.Join(dir, "triagemq") {
		if err := broker.Build(ctx); err != nil {
			return err
		}
	}
	if err := broker.Start(ctx); err != nil {
		return err
	}
	defer broker.Kill()
	s.Broker = broker.ConnectionString()
	s.Blobs = cmp.Or(s.Blobs, filepath.Join(dir, "blobs"))
	if err := prepare(ctx, broker, dir); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	d := &demo{
		settings: s, ctx: ctx, program: program, out: &lineWriter{out: out},
		instances: map[string]*exec.Cmd{}, types: map[string]bool{},
	}
	defer d.wg.Wait()
	defer cancel()
	for range s.count {
		if _, err := d.startInstance(); err != nil {
			return err
		}
	}
	for name := range strings.SplitSeq(s.sensors, ",") {
		d.types[name] = true
	}
	if _, err := d.start("sensors", "generate", "--sensors", s.sensors); err != nil {
		return err
	}
	c, err := client.Dial(ctx, s.Broker, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	return s.runWeb(ctx, c, d, d.out)
}

// prepare makes the hub.
func prepare(ctx context.Context, b process.Broker, dir string) error {
	file := filepath.Join(dir, "triagemq.yaml")
	if err := os.WriteFile(file, definitions, 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, b.Binary, "apply", "-f", file)
	cmd.Env = append(os.Environ(), "TRIAGEMQ_CONNECTION_STRING="+b.ConnectionString())
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make the hub: %w\n%s", err, text)
	}
	return nil
}

// welcome tells where the pages are, and what to try.
func (d *demo) welcome(page string) {
	at := ""
	if page != "http://"+defaultListen {
		at = " --at " + page
	}
	d.out.printf(`
%d homes with the sensors %s report %.0f times a second; %d instances share %d partitions.

  A resident's page      %s/?home=42
  The operations page    %s/operations

In another terminal:

  go run ./examples/homesecurity instance%s            adds an instance
  go run ./examples/homesecurity add-sensor water%s    a new kind of sensor in each home
  kill -9 PID                                        of an instance: the others take over

Ctrl-C ends everything.

`, d.Homes, strings.ReplaceAll(d.sensors, ",", ", "), float64(d.Homes*len(d.types))*d.Speed/60, d.count, partitions, page, page, at, at)
}

// start runs a command of this program as a process, whose lines are shown with its name.
func (d *demo) start(name string, args ...string) (*exec.Cmd, error) {
	args = append(args, "--child", "--broker", d.Broker, "--blobs", d.Blobs, "--homes", fmt.Sprint(d.Homes), "--speed", fmt.Sprint(d.Speed))
	cmd := exec.Command(d.program, args...)
	lines := &lineWriter{out: d.out, prefix: name + ": "}
	cmd.Stdout, cmd.Stderr = lines, lines
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	ended := make(chan struct{})
	d.wg.Go(func() {
		defer close(ended)
		err := cmd.Wait()
		if d.ctx.Err() == nil {
			d.out.printf("%s (pid %d) has ended: %v\n", name, cmd.Process.Pid, err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.instances, name)
	})
	d.wg.Go(func() {
		select {
		case <-ended:
			return
		case <-d.ctx.Done():
		}
		_ = stdin.Close() // asks it to end
		select {
		case <-ended:
		case <-time.After(2 * time.Second):
			_ = cmd.Process.Kill() // the broker may be gone, and there is nothing to hand over to
		}
	})
	return cmd, nil
}

// startInstance runs one more instance.
func (d *demo) startInstance() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.started++
	name := fmt.Sprintf("instance-%d", d.started)
	cmd, err := d.start(name, "instance", "--name", name)
	if err != nil {
		return "", err
	}
	d.instances[name] = cmd
	d.out.printf("%s runs, pid %d\n", name, cmd.Process.Pid)
	return name, nil
}

// describe tells other commands the settings.
func (d *demo) describe(rw http.ResponseWriter, _ *http.Request) { answer(rw, d.settings, nil) }

// mostInstances is how many instances the page can start.
const mostInstances = partitions + 4

// addInstance starts one more instance.
func (d *demo) addInstance(rw http.ResponseWriter, _ *http.Request) {
	d.mu.Lock()
	n := len(d.instances)
	d.mu.Unlock()
	if n >= mostInstances {
		http.Error(rw, fmt.Sprintf("%d instances are enough", n), http.StatusConflict)
		return
	}
	name, err := d.startInstance()
	answer(rw, name, err)
}

// killInstance ends an instance as abruptly as it can be ended.
func (d *demo) killInstance(rw http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	cmd := d.instances[r.PathValue("name")]
	d.mu.Unlock()
	if cmd == nil {
		http.Error(rw, "the demo has not started this instance", http.StatusNotFound)
		return
	}
	answer(rw, "killed", cmd.Process.Kill())
}

// addSensor gives each home one more sensor.
func (d *demo) addSensor(rw http.ResponseWriter, r *http.Request) {
	name := r.PathValue("type")
	if err := checkSensor(name); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.types[name] || len(d.types) == 16 {
		http.Error(rw, "the homes have this sensor, or have 16", http.StatusConflict)
		return
	}
	_, err := d.start(name+" sensors", "add-sensor", name)
	d.types[name] = err == nil
	answer(rw, name, err)
}

// lineWriter writes whole lines, one at a time, each with a prefix.
type lineWriter struct {
	mu     sync.Mutex
	out    io.Writer
	prefix string
	part   []byte // of a line that has not ended
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.part = append(w.part, p...)
	for {
		i := bytes.IndexByte(w.part, '\n')
		if i < 0 {
			return len(p), nil
		}
		if _, err := fmt.Fprintf(w.out, "%s%s", w.prefix, w.part[:i+1]); err != nil {
			return len(p), err
		}
		w.part = w.part[i+1:]
	}
}

func (w *lineWriter) printf(format string, args ...any) { fmt.Fprintf(w, format, args...) }
