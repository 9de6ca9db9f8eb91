// SPDX-License-Identifier: Apache-2.0

//go:build linux

package processors

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/test/process"
)

// fleet is the instances of one hub, and what they have told.
type fleet struct {
	t      *testing.T
	broker *process.Process
	start  process.Options // of the broker
	addr   string
	c      *client.Client
	parts  int
	sent   int

	mu        sync.Mutex
	alive     []*instance
	seen      map[string]int // how often each body was; guarded by mu
	cancelled int            // handlers; guarded by mu
	changed   chan struct{}  // capacity 1
}

type instance struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	out   sync.WaitGroup
	err   strings.Builder
	owns  map[string]bool // guarded by the fleet's mu
	count int             // events that it told of; guarded by the fleet's mu
}

const hubName, groupName = "readings", "fleet"

// newFleet starts a broker at an address of the loopback network.
func newFleet(t *testing.T, addr string, parts int) *fleet {
	dir := t.TempDir()
	f := &fleet{
		t: t, addr: addr, parts: parts, seen: map[string]int{}, changed: make(chan struct{}, 1),
		start: process.Options{
			Dir:    dir,
			Config: fmt.Sprintf("hubs: [{name: %s, partitionCount: %d, consumerGroups: [%s]}]", hubName, parts, groupName),
			Args:   []string{"--dev", "--data", dir + "/data", "--listen", addr},
		},
	}
	f.boot()
	t.Cleanup(func() { f.broker.Kill() })
	var err error
	if f.c, err = client.New(f.connection(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.c.Close() })
	return f
}

func (f *fleet) boot() {
	f.t.Helper()
	var err error
	if f.broker, err = process.Start(f.start); err != nil {
		f.t.Fatal(err)
	}
}

// free returns an address that nobody listens at.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// connection is the emulators' well-known one. The SDKs take no port for that of AMQP.
func (f *fleet) connection() string {
	return "Endpoint=sb://" + strings.TrimSuffix(f.addr, ":5672") +
		";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
}

// ours starts an instance of our processor.
func (f *fleet) ours(name string, set func(*instanceSettings)) *instance {
	f.t.Helper()
	s := instanceSettings{Connection: f.connection(), Hub: hubName, Group: groupName, Name: name}
	if set != nil {
		set(&s)
	}
	text, err := json.Marshal(s)
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), instanceVariable+"="+string(text))
	return f.run(name, cmd)
}

// run starts a program that tells what it does.
func (f *fleet) run(name string, cmd *exec.Cmd) *instance {
	f.t.Helper()
	i := &instance{name: name, cmd: cmd, owns: map[string]bool{}}
	cmd.Stderr = &i.err
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if i.stdin, err = cmd.StdinPipe(); err != nil {
		f.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = cmd.Process.Kill(); i.out.Wait() })
	f.mu.Lock()
	f.alive = append(f.alive, i)
	f.mu.Unlock()
	i.out.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			f.heard(i, strings.Fields(lines.Text()))
		}
	})
	return i
}

func (f *fleet) heard(i *instance, words []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch words[0] {
	case "claim":
		i.owns[words[1]] = true
	case "lost":
		delete(i.owns, words[1])
	case "event":
		f.seen[words[3]]++
		i.count++
	case "cancelled":
		f.cancelled++
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// stop ends an instance politely.
func (f *fleet) stop(i *instance) {
	f.t.Helper()
	_ = i.stdin.Close()
	i.out.Wait()
	if err := i.cmd.Wait(); err != nil {
		f.t.Errorf("%s: %v\n%s", i.name, err, i.err.String())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, other := range f.alive {
		if other == i {
			f.alive = append(f.alive[:at:at], f.alive[at+1:]...)
		}
	}
}

// publish sends so many events to each partition.
func (f *fleet) publish(each int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	for p := range f.parts {
		s, err := f.c.OpenSender(ctx, fmt.Sprint(hubName, "/Partitions/", p), nil)
		if err != nil {
			f.t.Fatal(err)
		}
		var ms []*client.Message
		for range each {
			ms = append(ms, &client.Message{Body: fmt.Append(nil, f.sent)})
			f.sent++
		}
		if err := s.SendBatch(ctx, ms); err != nil {
			f.t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			f.t.Fatal(err)
		}
	}
}

// until waits until the fleet is as wanted.
func (f *fleet) until(what string, wanted func() bool) {
	f.t.Helper()
	late := time.After(90 * time.Second)
	for {
		f.mu.Lock()
		ok := wanted()
		f.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-f.changed:
		case <-late:
			f.mu.Lock()
			defer f.mu.Unlock()
			var owns []string
			for _, i := range f.alive {
				owns = append(owns, fmt.Sprint(i.name, " ", i.owns, " ", i.err.String()))
			}
			f.t.Fatalf("not %s: %d of %d events seen\n%s", what, len(f.seen), f.sent, strings.Join(owns, "\n"))
		}
	}
}

// owners says whether the instances have so many partitions each, and none has two owners.
func (f *fleet) owners(want map[*instance]int) bool {
	owned := map[string]bool{}
	total := 0
	for i, n := range want {
		if len(i.owns) != n {
			return false
		}
		total += n
		for p := range i.owns {
			owned[p] = true
		}
	}
	return len(owned) == total
}

func (f *fleet) all() bool { return len(f.seen) == f.sent }

// checkpoints returns those of all partitions.
func (f *fleet) checkpoints() map[string]client.SeqNo {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	list, err := f.c.Group(hubName, groupName).Checkpoints(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	out := map[string]client.SeqNo{}
	for _, c := range list {
		out[c.Partition] = c.SeqNo
	}
	return out
}

// untilSaved waits until all checkpoints are at an event.
func (f *fleet) untilSaved(n client.SeqNo) {
	f.t.Helper()
	late := time.After(30 * time.Second)
	for tick := time.Tick(50 * time.Millisecond); ; {
		saved := 0
		for _, at := range f.checkpoints() {
			if at == n {
				saved++
			}
		}
		if saved == f.parts {
			return
		}
		select {
		case <-tick:
		case <-late:
			f.t.Fatalf("checkpoints %v, want %d", f.checkpoints(), n)
		}
	}
}
