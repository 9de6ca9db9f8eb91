// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/examples/process"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	host := flag.String("host", "", "`host:port` of a development broker that runs already; without it the example starts its own")
	length := flag.Duration("for", 6*time.Second, "how long each discipline is watched")
	flag.Parse()
	if err := show(ctx, os.Stdout, *host, *length); err != nil {
		fmt.Fprintln(os.Stderr, "fairlanes:", err)
		os.Exit(1)
	}
}

// show runs every lane on the broker at host, or on one that it starts.
func show(ctx context.Context, w io.Writer, host string, length time.Duration) error {
	if host == "" {
		dir, err := os.MkdirTemp("", "triagemq-fairlanes-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) // the example's own, and empty of value when it ends
		own := process.Broker{Binary: filepath.Join(dir, "triagemq"), Data: filepath.Join(dir, "data")}
		if err := own.Build(ctx); err != nil {
			return err
		}
		if err := own.Start(ctx); err != nil {
			return err
		}
		defer own.Kill()
		host = own.Address
	}
	b := &broker{
		http:   "http://" + host,
		amqp:   "amqp://RootManageSharedAccessKey:SAS_KEY_VALUE@" + host,
		key:    "SAS_KEY_VALUE",
		length: length,
	}
	for _, lane := range lanes {
		if _, err := b.run(ctx, w, lane); err != nil {
			return err
		}
	}
	return nil
}

// lane is one discipline under a flood, and its bound for bronze.
type lane struct {
	name   string
	policy string        // the fields that differ
	flood  string        // the plan of the flood
	speed  int           // of the flood, in messages per second
	bound  time.Duration // messages that arrive later than this after a bronze message are delivered after it; zero is no bound
}

var lanes = []lane{
	{"strict", `"discipline": "strict"`, "gold", 120, 0},
	{"aging", `"discipline": "aging", "aging": {"interval": "250ms", "maxLevel": 8}`, "gold", 120, 1500 * time.Millisecond},
	{"deadline", `"discipline": "deadline"`, "bronze", 400, 0},
}

// classes are the same in every lane.
const classes = `"fairKey": "tenant", "classes": [
	{"name": "gold",   "level": 8, "when": "plan = 'gold'",   "objective": {"wait": "200ms"}},
	{"name": "silver", "level": 5, "when": "plan = 'silver'", "objective": {"wait": "1s"}},
	{"name": "bronze", "level": 2, "objective": {"wait": "2s"}}]`

// plans are the classes, the highest first.
var plans = []string{"gold", "silver", "bronze"}

// Speeds, in messages per second.
const (
	workSpeed = 100
	calmSpeed = 4 // of each of the other plans
)

// served is a message that was worked off.
type served struct {
	plan     string
	enqueued time.Time
	waited   time.Duration
}

// run floods the queue of a lane, works at its rate, and prints the results of
// each class.
func (b *broker) run(ctx context.Context, w io.Writer, l lane) ([]served, error) {
	queue := "fairlanes-" + l.name
	consequences, err := b.define(ctx, queue, "{"+l.policy+", "+classes+"}")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(w, "\n== %s, with a flood of %s\n", l.name, l.flood)
	for _, text := range consequences {
		fmt.Fprintln(w, "  "+text)
	}
	c, err := client.Dial(ctx, b.amqp, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, b.length)
	defer cancel()
	errs := make(chan error, 2)
	go func() { errs <- send(ctx, c, queue, l) }() // waited for below
	done, err := work(ctx, c, queue)
	if sent := <-errs; err == nil {
		err = sent
	}
	if err != nil {
		return nil, err
	}
	b.tell(w, l, done)
	return done, b.objectives(context.WithoutCancel(ctx), w, queue)
}

// send floods the queue with one plan of one tenant, and sends a little of another.
func send(ctx context.Context, c *client.Client, queue string, l lane) error {
	s, err := c.OpenSender(ctx, queue, nil)
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second / time.Duration(l.speed))
	defer tick.Stop()
	for n := 0; ; n++ {
		batch := []*client.Message{{Properties: map[string]any{"plan": l.flood, "tenant": "flood"}}}
		if n%(l.speed/calmSpeed) == 0 {
			for _, plan := range plans {
				if plan != l.flood {
					batch = append(batch, &client.Message{Properties: map[string]any{"plan": plan, "tenant": "calm"}})
				}
			}
		}
		for _, m := range batch {
			if err := s.Send(ctx, m); err != nil {
				return unlessOver(ctx, err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// work is one worker that takes a message at a time.
func work(ctx context.Context, c *client.Client, queue string) ([]served, error) {
	r, err := c.OpenReceiver(ctx, queue, nil)
	if err != nil {
		return nil, err
	}
	var done []served
	tick := time.NewTicker(time.Second / workSpeed)
	defer tick.Stop()
	for m, err := range r.Messages(ctx) {
		if err != nil {
			return done, err
		}
		plan, _ := m.Properties["plan"].(string)
		done = append(done, served{plan, m.Enqueued, time.Since(m.Enqueued)})
		if err := r.Complete(ctx, m); err != nil {
			return done, unlessOver(ctx, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return done, nil
}

// unlessOver drops the error of an operation that the end of the show cut off.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// tell prints the results of each class, and whether the bound was kept.
func (b *broker) tell(w io.Writer, l lane, done []served) {
	for _, plan := range plans {
		n, longest := 0, time.Duration(0)
		for _, s := range done {
			if s.plan == plan {
				n++
				longest = max(longest, s.waited)
			}
		}
		fmt.Fprintf(w, "  %-6s %4d served, the longest wait of them %v\n", plan, n, longest.Round(time.Millisecond))
	}
	if l.bound > 0 {
		fmt.Fprintf(w, "  of the messages that arrived more than %v after a bronze message, %d were delivered before it\n", l.bound, violations(done, l.bound))
	}
}

// violations counts the messages that were delivered before a bronze one
// although they arrived later than the bound allows.
func violations(done []served, bound time.Duration) int {
	n := 0
	for i, s := range done {
		if s.plan != "bronze" {
			continue
		}
		for _, before := range done[:i] {
			if before.enqueued.After(s.enqueued.Add(bound)) {
				n++
			}
		}
	}
	return n
}
