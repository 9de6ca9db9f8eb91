// SPDX-License-Identifier: Apache-2.0

//go:build linux

package disk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
)

// program returns the broker to run.
var program = sync.OnceValues(func() (string, error) {
	if b := os.Getenv("TRIAGEMQ_BINARY"); b != "" {
		return b, nil
	}
	dir, err := os.MkdirTemp("", "triagemq-disk-")
	if err != nil {
		return "", err
	}
	built.Store(true)
	b := filepath.Join(dir, "triagemq")
	build := exec.Command("go", "build", "-o", b, "./cmd/triagemq")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return b, fmt.Errorf("build the broker: %w\n%s", err, out)
	}
	return b, nil
})

var built atomic.Bool // a binary of our own, which has to be removed

func removeBinary() {
	if built.Load() {
		b, _ := program()
		os.RemoveAll(filepath.Dir(b))
	}
}

const key = "0123456789abcdef0123456789abcdef"

// queues are the ones that every broker here has.
var queues = []string{"orders", "invoices", "mail", "reports"}

// broker is a running process.
type broker struct {
	t    *testing.T
	cmd  *exec.Cmd
	addr string
	data string        // its directory
	log  string        // file with what it wrote to its standard error
	done chan struct{} // closed when the process has ended
	err  error         // how it ended; set before done is closed
}

// start runs the broker with its store on a disk. It must start, whatever is on the
// disk and however little is free.
func (d *disk) start() *broker {
	d.t.Helper()
	path, err := program()
	if err != nil {
		d.t.Fatal(err)
	}
	dir := d.t.TempDir()
	file := filepath.Join(dir, "triagemq.yaml")
	config := fmt.Sprintf("data: %s\nlisteners: [\"127.0.0.1:0\"]\n"+
		"security: {rules: [{name: root, rights: [Send, Listen, Manage], primaryKey: %s}]}\nqueues:\n",
		filepath.Join(d.dir, "data"), key)
	for _, q := range queues {
		config += fmt.Sprintf("  - {name: %s, maxDeliveryCount: 1000, maxSizeInMegabytes: 100000}\n", q)
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		d.t.Fatal(err)
	}
	b := &broker{t: d.t, data: filepath.Join(d.dir, "data"), log: filepath.Join(dir, "log"), done: make(chan struct{})}
	b.cmd = exec.Command(path, "serve", "--config", file)
	log, err := os.Create(b.log)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close() // the process has its own
	b.cmd.Stderr = log
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	addr := make(chan string, 1)
	go func() { // ends with the process, which the cleanup waits for
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if a, ok := strings.CutPrefix(lines.Text(), "  listening on "); ok {
				addr <- a
			}
		}
		b.err = b.cmd.Wait()
		close(b.done)
	}()
	d.t.Cleanup(b.kill)
	select {
	case b.addr = <-addr:
	case <-b.done:
		d.t.Fatalf("the broker does not start: %v\n%s", b.err, b.lastWords())
	}
	return b
}

// kill ends the process as kill -9 does.
func (b *broker) kill() {
	_ = b.cmd.Process.Kill() // fails if it has ended, which done tells
	<-b.done
}

// stop ends the process in good order.
func (b *broker) stop() {
	b.t.Helper()
	b.alive()
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.t.Fatal(err)
	}
	select {
	case <-b.done:
	case <-time.After(time.Minute):
		b.t.Fatalf("the broker does not stop\n%s", b.lastWords())
	}
	if b.err != nil {
		b.t.Fatalf("the broker ended with %v\n%s", b.err, b.lastWords())
	}
}

// alive fails the test if the process has ended by itself.
func (b *broker) alive() {
	b.t.Helper()
	select {
	case <-b.done:
		b.t.Fatalf("the broker has ended: %v\n%s", b.err, b.lastWords())
	default:
	}
}

// lastWords returns the end of the log.
func (b *broker) lastWords() string {
	text, err := os.ReadFile(b.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4<<10):]) + b.metrics()
}

// metrics returns what the broker measures of its disk and its shards.
func (b *broker) metrics() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.t.Context()), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.addr+"/metrics", nil)
	if err != nil {
		return err.Error()
	}
	req.SetBasicAuth("root", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	var text strings.Builder
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if name, _, _ := strings.Cut(lines.Text(), " "); strings.HasPrefix(name, "triagemq_disk") || strings.HasPrefix(name, "triagemq_shard_snapshot") {
			fmt.Fprintln(&text, lines.Text())
		}
	}
	return text.String()
}

// dial returns a client that gives up soon: what it did not hear of is unknown.
func (b *broker) dial(ctx context.Context) (*client.Client, error) {
	return client.Dial(ctx, "amqp://root:"+key+"@"+b.addr, &client.Options{RetryFor: time.Second})
}

// connect is dial for a test that cannot go on without.
func (b *broker) connect(ctx context.Context) *client.Client {
	b.t.Helper()
	c, err := b.dial(ctx)
	if err != nil {
		b.t.Fatalf("connect: %v\n%s", err, b.lastWords())
	}
	b.t.Cleanup(func() { c.Close(context.WithoutCancel(ctx)) }) // fails if the broker is gone
	return c
}

// written returns how many bytes the process has written so far, to files and to
// sockets, whether the file system counts them or not.
func (b *broker) written() int64 {
	b.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", b.cmd.Process.Pid))
	if err != nil {
		b.t.Fatal(err)
	}
	var most int64
	for line := range strings.Lines(string(text)) {
		var n int64
		for _, name := range []string{"wchar: %d", "write_bytes: %d"} {
			if _, err := fmt.Sscanf(line, name, &n); err == nil {
				most = max(most, n)
			}
		}
	}
	return most
}

// rest waits until the broker, which nobody uses, writes no more and leaves its files
// as they are.
func (b *broker) rest() {
	b.t.Helper()
	const most = 1 << 20 // in two seconds
	var wrote int64
	for range 30 {
		before, files := b.written(), b.files()
		<-time.After(2 * time.Second)
		b.alive()
		if wrote = b.written() - before; wrote < most && b.files() == files {
			return
		}
	}
	b.t.Fatalf("the broker has written for a minute although nobody uses it, %d bytes in the last two seconds\n%s\n%s",
		wrote, b.files(), b.lastWords())
}

// files describes the segments of the store. (The manifest may be written again, with
// how far the log is synced.)
func (b *broker) files() string {
	b.t.Helper()
	entries, err := os.ReadDir(b.data)
	if err != nil {
		b.t.Fatal(err)
	}
	var text strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since
		}
		if err != nil {
			b.t.Fatal(err)
		}
		fmt.Fprintln(&text, e.Name(), info.Size())
	}
	return text.String()
}

// isFull reports whether a sender was refused because the disk is full, and told so.
func isFull(err error) bool {
	return errors.Is(err, client.ErrQuota) && strings.Contains(err.Error(), "disk is full")
}
