// SPDX-License-Identifier: Apache-2.0

//go:build linux

package limits

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
)

// binary returns the broker to run.
var binary = sync.OnceValues(func() (string, error) {
	if b := os.Getenv("TRIAGEMQ_BINARY"); b != "" {
		return b, nil
	}
	dir, err := os.MkdirTemp("", "triagemq-limits-")
	if err != nil {
		return "", err
	}
	b := filepath.Join(dir, "triagemq")
	build := exec.Command("go", "build", "-o", b, "./cmd/triagemq")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the broker: %w\n%s", err, out)
	}
	return b, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if b, err := binary(); err == nil && os.Getenv("TRIAGEMQ_BINARY") == "" {
		os.RemoveAll(filepath.Dir(b))
	}
	os.Exit(code)
}

// broker is a running process.
type broker struct {
	t    *testing.T
	cmd  *exec.Cmd
	addr string
	log  string        // file with what it wrote to its standard error
	done chan struct{} // closed when the process has ended
	err  error         // how it ended; set before done is closed
}

// start runs the broker in a shell that first does what limit says, with small
// segments and the queue q.
func start(t *testing.T, limit string) *broker {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "triagemq.yaml")
	err = os.WriteFile(file, []byte("storage: {segmentSize: 1MiB, snapshotAfter: 1MiB}\nqueues: [{name: q}]\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{t: t, log: filepath.Join(dir, "log"), done: make(chan struct{})}
	b.cmd = exec.Command("bash", "-c", limit+` && exec "$0" "$@"`, program,
		"serve", "--dev", "--config", file, "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0")
	log, err := os.Create(b.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the process has its own
	b.cmd.Stderr = log
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr := make(chan string, 1)
	go func() { // ends with the process, which stop waits for
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if a, ok := strings.CutPrefix(lines.Text(), "  listening on "); ok {
				addr <- a
			}
		}
		b.err = b.cmd.Wait()
		close(b.done)
	}()
	t.Cleanup(func() {
		if err := b.stop(); err != nil {
			t.Errorf("the broker ended with %v\n%s", err, b.lastWords())
		}
	})
	select {
	case b.addr = <-addr:
	case <-b.done:
		t.Fatalf("the broker does not start: %v\n%s", b.err, b.lastWords())
	}
	return b
}

// stop ends the process in good order and returns how it ended.
func (b *broker) stop() error {
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-b.done:
	case <-time.After(time.Minute):
		b.cmd.Process.Kill() // its parent must not wait for ever
		<-b.done
	}
	return b.err
}

// lastWords returns the end of the log.
func (b *broker) lastWords() string {
	text, err := os.ReadFile(b.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4<<10):])
}

// session logs in and begins a session.
func (b *broker) session(ctx context.Context) (*amqp.Session, error) {
	c, err := amqp.Dial(ctx, "amqp://"+b.addr, nil)
	if err != nil {
		return nil, err
	}
	b.t.Cleanup(func() { c.Close() })
	return c.NewSession(ctx, nil)
}
