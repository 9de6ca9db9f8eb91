// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/triagemq/triagemq/client"
)

// fleet is the instances of one run, and what they have told.
type fleet struct {
	broker *brokerProcess
	kind   kind
	sdk    string // program
	hub    string
	parts  int
	store  string

	mu      sync.Mutex
	alive   []*instance
	changed time.Time      // when the owners last changed; guarded by mu
	moves   int            // since the action; guarded by mu
	action  time.Time      // zero: not yet; guarded by mu
	seen    map[string]int // how often each event was handled; guarded by mu
	sent    int            // guarded by mu
}

type instance struct {
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
	up    chan time.Time
	owns  map[string]bool // guarded by the fleet's mu
}

func (f *fleet) start(name string, greedy bool) (*instance, error) {
	settings, err := json.Marshal(instanceSettings{Connection: f.broker.connection(), Hub: f.hub, Store: f.store, Name: name, Greedy: greedy})
	if err != nil {
		return nil, err
	}
	program := os.Args[0]
	if f.kind.sdk {
		program = f.sdk
	}
	i := &instance{cmd: exec.Command(program), done: make(chan struct{}), up: make(chan time.Time, 1), owns: map[string]bool{}}
	i.cmd.Env = append(os.Environ(), instanceVariable+"="+string(settings))
	i.cmd.Stderr = os.Stderr
	if i.stdin, err = i.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := i.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := i.cmd.Start(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.alive = append(f.alive, i)
	f.mu.Unlock()
	go func() {
		defer close(i.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			f.heard(i, strings.Fields(lines.Text()))
		}
		_ = i.cmd.Wait()
	}()
	return i, nil
}

func (f *fleet) heard(i *instance, words []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch words[0] {
	case "up":
		i.up <- time.Now()
	case "own":
		i.owns[words[1]] = true
		f.changed = time.Now()
		if !f.action.IsZero() {
			f.moves++
		}
	case "lost":
		delete(i.owns, words[1])
		f.changed = time.Now()
	case "event":
		first, _ := strconv.Atoi(words[2])
		last, _ := strconv.Atoi(words[3])
		for n := first; n <= last; n++ {
			f.seen[words[1]+"/"+strconv.Itoa(n)]++
		}
	}
}

// balanced reports whether each partition has one owner, and counts differ by at most one.
// It must be called with mu.
func (f *fleet) balanced() bool {
	owned := map[string]bool{}
	total := 0
	for _, i := range f.alive {
		if n := len(i.owns); n < f.parts/len(f.alive) || n > (f.parts+len(f.alive)-1)/len(f.alive) {
			return false
		}
		total += len(i.owns)
		for p := range i.owns {
			owned[p] = true
		}
	}
	return total == f.parts && len(owned) == f.parts
}

// settle waits until the fleet is balanced and stays so, and returns when it was.
func (f *fleet) settle() (time.Time, error) {
	calm := time.Second
	if f.kind.store {
		calm = 4 * interval
	}
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		f.mu.Lock()
		ok, changed := f.balanced(), f.changed
		f.mu.Unlock()
		if ok && time.Since(changed) > calm {
			return changed, nil
		}
	}
	return time.Time{}, errors.New("not settled after 2 minutes")
}

func (f *fleet) kill(i *instance) {
	_ = i.cmd.Process.Kill()
	<-i.done
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alive = f.alive[1:]
}

func (f *fleet) stop() {
	for _, i := range f.alive {
		_ = i.stdin.Close()
	}
	for _, i := range f.alive {
		select {
		case <-i.done:
		case <-time.After(10 * time.Second):
			_ = i.cmd.Process.Kill()
		}
	}
}

// publish sends an event to each partition five times a second until ctx ends.
func (f *fleet) publish(ctx context.Context) error {
	c, err := client.Dial(ctx, f.broker.connection(), nil)
	if err != nil {
		return err
	}
	defer c.Close()
	var senders []*client.Sender
	for p := range f.parts {
		s, err := c.OpenSender(ctx, fmt.Sprint(f.hub, "/Partitions/", p), nil)
		if err != nil {
			return err
		}
		senders = append(senders, s)
	}
	for tick := time.Tick(200 * time.Millisecond); ; {
		select {
		case <-tick:
		case <-ctx.Done():
			return nil
		}
		var wg sync.WaitGroup
		var lock sync.Mutex
		for _, s := range senders {
			wg.Go(func() {
				if s.Send(context.WithoutCancel(ctx), &client.Message{Body: make([]byte, 256)}) == nil {
					lock.Lock()
					defer lock.Unlock()
					f.mu.Lock()
					f.sent++
					f.mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
}

// measure runs one scenario with one kind of fleet.
func measure(ctx context.Context, b *brokerProcess, sdk string, s scenario, k kind, hub string) (r result) {
	f := &fleet{broker: b, kind: k, sdk: sdk, hub: hub, parts: s.partitions, seen: map[string]int{}}
	defer f.stop()
	if k.store {
		store := serveStore()
		defer store.Close()
		f.store = store.URL
	}
	publishing, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var publishErr error
	wg.Go(func() { publishErr = f.publish(publishing) })
	fail := func(err error) result { stop(); wg.Wait(); return result{failed: err} }

	for n := range s.before {
		// Greedy ones settle sooner, and only renew their records when others join.
		i, err := f.start(fmt.Sprint("before-", n), k.greedy || !s.crash)
		if err != nil {
			return fail(err)
		}
		<-i.up
	}
	if s.before > 0 {
		if _, err := f.settle(); err != nil {
			return fail(fmt.Errorf("before: %w", err))
		}
	}
	f.mu.Lock()
	f.action = time.Now()
	f.changed = f.action
	began := f.action
	f.mu.Unlock()
	var ups []chan time.Time
	for n := range s.join {
		i, err := f.start(fmt.Sprint("joined-", n), k.greedy)
		if err != nil {
			return fail(err)
		}
		ups = append(ups, i.up)
	}
	for n, up := range ups {
		if at := <-up; n == 0 {
			began = at
		}
	}
	if s.crash {
		f.kill(f.alive[0])
	}
	settled, err := f.settle()
	if err != nil {
		return fail(err)
	}
	stop()
	wg.Wait()
	if publishErr != nil {
		return result{failed: publishErr}
	}
	for range 300 {
		f.mu.Lock()
		all := len(f.seen) >= f.sent
		f.mu.Unlock()
		if all {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r = result{settled: settled.Sub(began), moves: f.moves, events: f.sent}
	for _, n := range f.seen {
		if n > 1 {
			r.twice++
		}
	}
	if len(f.seen) < f.sent {
		r.failed = fmt.Errorf("%d of %d events were not handled", f.sent-len(f.seen), f.sent)
	}
	return r
}

// measureSpeed returns how many events a second one instance handles in three runs, and the
// least processor time that it took for an event.
func measureSpeed(ctx context.Context, b *brokerProcess, count int) ([]int, time.Duration, error) {
	c, err := client.Dial(ctx, b.connection(), nil)
	if err != nil {
		return nil, 0, err
	}
	defer c.Close()
	count, err = fillAll(ctx, c, speedHub, 16, count, load{size: 256, batch: 100})
	if err != nil {
		return nil, 0, err
	}
	var rates []int
	least := time.Hour
	for run := range 3 {
		rate, ended, err := instanceOf(instanceSettings{Connection: b.connection(), Hub: speedHub, Name: fmt.Sprint("speed-", run), Count: count})
		if err != nil {
			return nil, 0, err
		}
		took := ended.UserTime() + ended.SystemTime()
		rates, least = append(rates, rate), min(least, took/time.Duration(count))
		// The next run begins at the start again.
		if err := c.Group(speedHub, "").Rewind(ctx, "", client.Position{}); err != nil {
			return nil, 0, err
		}
	}
	return rates, least, nil
}

// measureMemory returns the most memory that one instance takes, in MiB, while it handles events
// of 8 KiB of many partitions with a slow handler.
func measureMemory(ctx context.Context, b *brokerProcess, count int) (int, error) {
	c, err := client.Dial(ctx, b.connection(), nil)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	count, err = fillAll(ctx, c, wideHub, widePartitions, count, load{size: 8 << 10, batch: 10})
	if err != nil {
		return 0, err
	}
	_, ended, err := instanceOf(instanceSettings{Connection: b.connection(), Hub: wideHub, Name: "wide", Count: count, Slow: 200 * time.Millisecond})
	if err != nil {
		return 0, err
	}
	return int(ended.SysUsage().(*syscall.Rusage).Maxrss >> 10), nil
}

// load is what is published.
type load struct{ size, batch int } // bytes of an event, events of a batch

// fillAll publishes about as many events as asked for, and returns how many.
func fillAll(ctx context.Context, c *client.Client, hub string, partitions, count int, l load) (int, error) {
	batches := count / partitions / l.batch
	errs := make([]error, partitions)
	var wg sync.WaitGroup
	for p := range partitions {
		wg.Go(func() { errs[p] = fill(ctx, c, fmt.Sprint(hub, "/Partitions/", p), batches, l) })
	}
	wg.Wait()
	return batches * l.batch * partitions, errors.Join(errs...)
}

func fill(ctx context.Context, c *client.Client, address string, batches int, l load) error {
	s, err := c.OpenSender(ctx, address, nil)
	if err != nil {
		return err
	}
	var ms []*client.Message
	for range l.batch {
		ms = append(ms, &client.Message{Body: make([]byte, l.size)})
	}
	for range batches {
		if err := s.SendBatch(ctx, ms); err != nil {
			return err
		}
	}
	return s.Close()
}

// instanceOf runs one instance and returns the rate that it tells, and what it has taken.
func instanceOf(s instanceSettings) (int, *os.ProcessState, error) {
	settings, err := json.Marshal(s)
	if err != nil {
		return 0, nil, err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), instanceVariable+"="+string(settings))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	rate := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "rate %d", &rate); err == nil {
			break
		}
	}
	_ = stdin.Close()
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		return 0, nil, err
	}
	return rate, cmd.ProcessState, nil
}
