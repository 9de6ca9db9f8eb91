// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
)

const (
	bystanderQueue = "bystander"
	bystanderPause = 5 * time.Millisecond // between two rounds
	patience       = 10 * time.Second     // the longest that an operation of it may take

	// bystanderOf names, in the environment of the bystander's process, the address of
	// its broker.
	bystanderOf = "HOSTILE_BYSTANDER"
)

// bystander is a well-behaved client: it sends a small message, receives and
// completes it, again and again. It is a separate process, so that it does not
// wait for the attackers.
type bystander struct {
	stdin io.Closer     // closing it ends the process
	done  chan struct{} // closed when the process has ended

	mu     sync.Mutex
	took   []time.Duration // by sends and receives since the last report; guarded by mu
	fault  error           // the first; guarded by mu
	rounds int             // so far; guarded by mu
}

// watch starts a bystander of a broker.
func watch(b *broker) (*bystander, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), bystanderOf+"="+b.Addr)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &bystander{stdin: stdin, done: make(chan struct{})}
	go func() { // ends with the process, which stop waits for
		defer close(w.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.note(lines.Text())
		}
		_ = cmd.Wait() // its output has been read
	}()
	return w, nil
}

// note reads a line of the process: the end of a round, the nanoseconds of an
// operation, or an error.
func (w *bystander) note(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if line == "round" {
		w.rounds++
		return
	}
	if n, err := strconv.ParseInt(line, 10, 64); err == nil {
		w.took = append(w.took, time.Duration(n))
	} else if w.fault == nil {
		w.fault = fmt.Errorf("%s", line)
	}
}

func (w *bystander) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rounds
}

// rest waits for a whole round that begins now, so that what is under way is counted,
// or for the end of one of the processes.
func (w *bystander) rest(b *broker) {
	for from, begin := w.count(), time.Now(); w.count() < from+2 && time.Since(begin) < 3*patience && !b.Dead(); {
		select {
		case <-time.After(bystanderPause):
		case <-w.done:
			return
		}
	}
}

// waits summarises how long operations took.
type waits struct {
	count    int
	p99, max time.Duration
}

func (w waits) String() string {
	return fmt.Sprintf("p99 %v, longest %v of %d operations",
		w.p99.Round(10*time.Microsecond), w.max.Round(10*time.Microsecond), w.count)
}

// waitsOf sums up.
func waitsOf(took []time.Duration) waits {
	if len(took) == 0 {
		return waits{}
	}
	took = slices.Sorted(slices.Values(took))
	return waits{len(took), took[len(took)*99/100], took[len(took)-1]}
}

// report returns how long operations took since the last report, and the first fault.
func (w *bystander) report() ([]time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	took, fault := w.took, w.fault
	w.took, w.fault = nil, nil
	return took, fault
}

func (w *bystander) stop() {
	w.stdin.Close()
	<-w.done
}

// standBy is the process of a bystander. It ends with its standard input, or with the
// test that started it.
func standBy(addr string) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
		time.AfterFunc(time.Second, func() { os.Exit(0) }) // even if the broker does not answer
	}()
	say := func(what string, err error) { fmt.Println(what + " " + strings.ReplaceAll(err.Error(), "\n", " ")) }
	open, done := context.WithTimeout(ctx, patience)
	defer done()
	c, err := client.Dial(open, "amqp://"+bystanderKey.Name+":"+bystanderKey.PrimaryKey+"@"+addr, nil)
	if err != nil {
		say("connect:", err)
		return
	}
	s, err := c.OpenSender(open, bystanderQueue, nil)
	if err != nil {
		say("open a sender:", err)
		return
	}
	r, err := c.OpenReceiver(open, bystanderQueue, nil)
	if err != nil {
		say("open a receiver:", err)
		return
	}
	timed := func(what string, do func(context.Context) error) {
		bounded, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		begin := time.Now()
		err := do(bounded)
		if ctx.Err() != nil {
			return // it is being stopped
		}
		fmt.Println(time.Since(begin).Nanoseconds())
		if err != nil {
			say(fmt.Sprintf("%s after %v:", what, time.Since(begin).Round(time.Millisecond)), err)
		}
	}
	for ctx.Err() == nil {
		timed("send", func(ctx context.Context) error {
			return s.Send(ctx, &client.Message{Body: []byte("a small message")})
		})
		timed("receive", func(ctx context.Context) error {
			ms, err := r.Receive(ctx, 1)
			if err != nil {
				return err
			}
			return r.Complete(ctx, ms...)
		})
		fmt.Println("round")
		pause(ctx, bystanderPause)
	}
}
