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
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/test/process"
)

const key = "0123456789abcdef0123456789abcdef"

// queues are the ones that every broker here has.
var queues = []string{"orders", "invoices", "mail", "reports"}

// broker is a running process.
type broker struct {
	*process.Process
	t    *testing.T
	data string // its directory
}

// start runs the broker with its store on a disk. It must always start, however
// little is free.
func (d *disk) start() *broker {
	d.t.Helper()
	data := filepath.Join(d.dir, "data")
	config := fmt.Sprintf("data: %s\nlisteners: [\"127.0.0.1:0\"]\n"+
		"security: {rules: [{name: root, rights: [Send, Listen, Manage], primaryKey: %s}]}\nqueues:\n", data, key)
	for _, q := range queues {
		config += fmt.Sprintf("  - {name: %s, maxDeliveryCount: 1000, maxSizeInMegabytes: 100000}\n", q)
	}
	p, err := process.Start(process.Options{Dir: d.t.TempDir(), Config: config})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(p.Kill)
	return &broker{p, d.t, data}
}

// stop stops the process cleanly.
func (b *broker) stop() {
	b.t.Helper()
	b.alive()
	if err := b.Stop(); err != nil {
		b.t.Fatalf("the broker ended with %v\n%s", err, b.lastWords())
	}
}

// alive fails the test if the process has ended by itself.
func (b *broker) alive() {
	b.t.Helper()
	if b.Dead() {
		b.t.Fatalf("the broker has ended: %v\n%s", b.Err, b.lastWords())
	}
}

// lastWords returns the end of the log, and what the broker measures.
func (b *broker) lastWords() string { return b.LastWords() + b.metrics() }

// metrics returns what the broker measures of its disk and its shards.
func (b *broker) metrics() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.t.Context()), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.Addr+"/metrics", nil)
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

// dial returns a client with short timeouts: the result of an unanswered
// operation is unknown.
func (b *broker) dial(ctx context.Context) (*client.Client, error) {
	return client.Dial(ctx, "amqp://root:"+key+"@"+b.Addr, &client.Options{RetryTimeout: time.Second})
}

// connect is dial for a test that cannot go on without.
func (b *broker) connect(ctx context.Context) *client.Client {
	b.t.Helper()
	c, err := b.dial(ctx)
	if err != nil {
		b.t.Fatalf("connect: %v\n%s", err, b.lastWords())
	}
	b.t.Cleanup(func() { c.Close() }) // fails if the broker has ended
	return c
}

// written returns how many bytes the process has written so far, to files and to
// sockets, whether the file system counts them or not.
func (b *broker) written() int64 {
	b.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", b.ID()))
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

// rest waits until the broker, which has no clients, writes no more and leaves
// its files as they are.
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
	b.t.Fatalf("the broker has written for a minute although it has no clients, %d bytes in the last two seconds\n%s\n%s",
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
			continue // removed since
		}
		if err != nil {
			b.t.Fatal(err)
		}
		fmt.Fprintln(&text, e.Name(), info.Size())
	}
	return text.String()
}

// isFull reports whether a send was rejected with the error for a full disk.
func isFull(err error) bool {
	return errors.Is(err, client.ErrQuota) && strings.Contains(err.Error(), "disk is full")
}
