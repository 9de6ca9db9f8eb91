// SPDX-License-Identifier: Apache-2.0

//go:build linux

package longwork

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/test/process"
	"github.com/triagemq/triagemq/worker"
)

const (
	workerVariable = "TRIAGEMQ_TEST_WORKER" // makes the test program a worker
	steps          = 100                    // of a task
	stepTime       = 60 * time.Millisecond  // so that a task takes longer than a lock of 5 s
	tasksAtOnce    = 4                      // of a worker
	workers        = 3
)

const configuration = `
security:
  rules:
    - {name: work, primaryKey: "bG9uZ3dvcmstbG9uZ3dvcmstbG9uZ3dvcms=", rights: [Send, Listen]}
queues:
  - {name: tasks, lockDuration: 5s, maxDeliveryCount: 1000}
`

func TestMain(m *testing.M) {
	if text := os.Getenv(workerVariable); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	process.Main(m)
}

// settings are those of a worker's process.
type settings struct{ Connection, History, Name string }

// event is a line of the history.
type event struct {
	At      time.Time
	Run     string // of a task: the worker, and its number
	Message client.SeqNo
	What    string // begin, step, saved, done
	Step    uint64 // of begin: where it goes on
}

// work is the whole program of a worker. It ends when its standard input does.
func work(text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	history, err := os.OpenFile(s.History, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	c, err := client.New(s.Connection, &client.Options{RetryTimeout: math.MaxInt64})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	pool := &worker.Pool{
		Client: c, Source: "tasks", Slots: tasksAtOnce, DurableLocks: true, Grace: 10 * time.Millisecond,
		Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			run := fmt.Sprintf("%s/%d", s.Name, rand.Uint64())
			note := func(what string, step uint64) {
				line, _ := json.Marshal(event{time.Now(), run, t.SeqNo, what, step})
				_, _ = history.Write(append(line, '\n')) // one write: lines of all workers stay whole
			}
			step := uint64(0)
			if state := t.State(); len(state) == 8 {
				step = binary.BigEndian.Uint64(state)
			}
			note("begin", step)
			for step < steps {
				select {
				case <-time.After(stepTime):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				step++
				note("step", step)
				if err := t.Save(ctx, binary.BigEndian.AppendUint64(nil, step)); err != nil {
					return err
				}
				note("saved", step)
			}
			note("done", step)
			return nil
		}),
	}
	return pool.Run(ctx)
}

// site is a broker with its workers.
type site struct {
	t       *testing.T
	broker  *process.Process
	start   process.Options
	history string
	workers [workers]*exec.Cmd
	begun   int // workers
}

func newSite(t *testing.T) *site {
	dir := t.TempDir()
	s := &site{t: t, history: filepath.Join(dir, "history")}
	if err := os.WriteFile(s.history, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.start = process.Options{Dir: dir, Config: configuration, Args: []string{"--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0"}}
	s.startBroker()
	s.start.Args[3] = s.broker.Addr // it comes back where its workers look for it
	t.Cleanup(func() { s.broker.Kill() })
	for i := range s.workers {
		s.startWorker(i)
	}
	t.Cleanup(func() {
		for i := range s.workers {
			s.killWorker(i)
		}
	})
	return s
}

func (s *site) startBroker() {
	s.t.Helper()
	var err error
	if s.broker, err = process.Start(s.start); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) connection() string {
	return fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=work;SharedAccessKey=bG9uZ3dvcmstbG9uZ3dvcmstbG9uZ3dvcms=;UseDevelopmentEmulator=true", s.broker.Addr)
}

func (s *site) startWorker(i int) {
	s.t.Helper()
	s.begun++
	text, err := json.Marshal(settings{s.connection(), s.history, fmt.Sprint("worker", s.begun)})
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // open while the test lives
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.workers[i] = cmd
}

func (s *site) killWorker(i int) {
	_ = s.workers[i].Process.Kill()
	_ = s.workers[i].Wait() // killed, or it has ended
}

// rounds is how often something is killed.
func rounds(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("LONGWORK_ROUNDS"))
	if text := os.Getenv("LONGWORK_ROUNDS"); text != "" && err != nil {
		t.Fatal(err)
	}
	return max(n, 4)
}

// A lock of long work outlives its broker, the state of a task outlives its worker, and no
// task runs twice at the same time.
func TestKills(t *testing.T) {
	s := newSite(t)
	n := rounds(t)
	c, err := client.New(s.connection(), &client.Options{RetryTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sender, err := c.OpenSender(t.Context(), "tasks", nil)
	if err != nil {
		t.Fatal(err)
	}
	tasks := workers*tasksAtOnce + n
	for range tasks {
		if err := sender.Send(t.Context(), &client.Message{Body: []byte("task")}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		<-time.After(time.Duration(500+rand.IntN(1500)) * time.Millisecond)
		if i%2 == 0 {
			s.broker.Kill()
			s.startBroker()
		} else {
			w := rand.IntN(workers)
			s.killWorker(w)
			s.startWorker(w)
		}
	}
	done := 0
	for until := time.Now().Add(10 * time.Minute); done < tasks && time.Now().Before(until); <-time.After(200 * time.Millisecond) {
		done = check(t, s.history)
		if t.Failed() {
			return
		}
	}
	if done != tasks {
		t.Errorf("%d of %d tasks are done", done, tasks)
	}
	t.Logf("%d kills, %d tasks of %v", n, done, steps*stepTime)
}

// check reads the history and returns how many messages are done.
func check(t *testing.T, name string) int {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type task struct {
		run    string          // the one that was seen last
		ended  map[string]bool // runs that another one has followed
		saved  uint64
		done   bool
		doneBy string
	}
	tasks := map[client.SeqNo]*task{}
	done := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // it is being written
		}
		m := tasks[e.Message]
		if m == nil {
			m = &task{ended: map[string]bool{}}
			tasks[e.Message] = m
		}
		if e.Run != m.run {
			if e.What != "begin" {
				t.Errorf("message %d: run %s goes on to %s %d after run %s had begun", e.Message, e.Run, e.What, e.Step, m.run)
			}
			m.ended[m.run], m.run = true, e.Run
		}
		switch e.What {
		case "begin":
			if e.Step < m.saved {
				t.Errorf("message %d: run %s begins at step %d, and %d was saved", e.Message, e.Run, e.Step, m.saved)
			}
		case "saved":
			m.saved = e.Step
		case "done":
			if !m.done {
				m.done = true
				done++
			}
		}
	}
	return done
}
