// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/test/process"
)

const (
	maxResident = 512 << 20           // resident memory that the process may have at any moment
	limits      = "ulimit -d 1048576" // KiB; kills it before it harms the machine
	memoryLimit = "GOMEMLIMIT=400MiB"
	long        = "HOSTILE_LONG" // plays everything as large as it was first seen
)

// isLong reports whether there is time for the large variants.
func isLong() bool { return os.Getenv(long) != "" }

// scale returns few, or many if there is time.
func scale(few, many int) int {
	if isLong() {
		return many
	}
	return few
}

func TestMain(m *testing.M) {
	if addr := os.Getenv(bystanderOf); addr != "" {
		standBy(addr)
		return
	}
	process.Main(m)
}

// broker is a running process.
type broker struct {
	*process.Process
	dir  string       // of its configuration, store and log
	peak atomic.Int64 // bytes resident, as last seen
}

// start runs the broker on a directory, which may have a store already, and waits
// until it listens.
func start(dir, configuration string, flags ...string) (*broker, error) {
	p, err := process.Start(process.Options{
		Dir: dir, Config: configuration, Shell: limits, Env: []string{memoryLimit},
		Args: append([]string{"--data", filepath.Join(dir, "data")}, flags...),
	})
	if err != nil {
		return nil, err
	}
	b := &broker{Process: p, dir: dir}
	go b.sample() // ends with the process
	return b, nil
}

// logged counts the lines of the log that contain a text.
func (b *broker) logged(text string) int { return strings.Count(b.Log(), text) }

// proc reads a file that the system keeps about the process.
func (b *broker) proc(name string) string {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(b.ID()), name)) // empty once it has ended
	return string(text)
}

// resident returns how much memory the process has now, and the most it had since
// resetPeak, in bytes.
func (b *broker) resident() (now, peak int64) {
	for line := range strings.Lines(b.proc("status")) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "VmRSS:":
			now = n << 10
		case "VmHWM:":
			peak = n << 10
		}
	}
	return now, peak
}

// sample keeps the peak for when there is no process to ask any more.
func (b *broker) sample() {
	for !b.Dead() {
		if _, peak := b.resident(); peak > 0 {
			b.peak.Store(peak)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-b.Done:
		}
	}
}

func (b *broker) resetPeak() {
	// See proc_pid_clear_refs(5).
	_ = os.WriteFile(filepath.Join("/proc", strconv.Itoa(b.ID()), "clear_refs"), []byte("5"), 0)
}

// sockets returns how many sockets the process has open. Its other files are
// those of the store, which grows.
func (b *broker) sockets() int {
	dir := filepath.Join("/proc", strconv.Itoa(b.ID()), "fd")
	entries, _ := os.ReadDir(dir) // none once it has ended
	n := 0
	for _, e := range entries {
		if to, _ := os.Readlink(filepath.Join(dir, e.Name())); strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// metric returns a number from /metrics.
func (b *broker) metric(ctx context.Context, name string) (float64, error) {
	body, err := b.get(ctx, root, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}

// web is the client of all HTTP requests. It keeps no connection, so that the
// descriptors of the broker can be counted.
var web = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	Timeout:       20 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// call makes an HTTP request with the key of a rule and returns the answer with
// its body.
func (b *broker) call(ctx context.Context, rule access.Rule, method, path string, body io.Reader, header ...string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+b.Addr+path, body)
	if err != nil {
		return nil, "", err
	}
	if rule.Name != "" {
		r.SetBasicAuth(rule.Name, rule.PrimaryKey)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := web.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	return resp, string(text), err
}

// get returns what is at a path, or an error for any other status than 200.
func (b *broker) get(ctx context.Context, rule access.Rule, path string) (string, error) {
	resp, text, err := b.call(ctx, rule, http.MethodGet, path, nil)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answered %s: %.200s", path, resp.Status, text)
	}
	return text, nil
}

// login connects an ordinary client with the key of a rule.
func (s *scene) login(rule access.Rule) *amqp.Session {
	s.Helper()
	conn, err := amqp.Dial(s.ctx, "amqp://"+s.Addr, &amqp.ConnOptions{
		SASLType: amqp.SASLTypePlain(rule.Name, rule.PrimaryKey), WriteTimeout: 10 * time.Second})
	if err != nil {
		s.Fatalf("log in as %s: %v", rule.Name, err)
	}
	s.Cleanup(func() { conn.Close() })
	session, err := conn.NewSession(s.ctx, nil)
	if err != nil {
		s.Fatalf("begin a session as %s: %v", rule.Name, err)
	}
	return session
}

// dialFrom connects from an address of this machine.
func (b *broker) dialFrom(ctx context.Context, ip net.IP) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: ip}}
	return d.DialContext(ctx, "tcp", b.Addr)
}
