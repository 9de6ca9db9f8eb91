// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/client"
)

// generator is the sensors of all homes.
type generator struct {
	client  *client.Client
	homes   int
	sensors []string
	speed   float64 // 1: each sensor reports once a minute
	sent    atomic.Int64
}

// senders is how many homes report at the same time.
const senders = 64

// run reports until ctx ends.
func (g *generator) run(ctx context.Context, out io.Writer) error {
	stopped := ctx.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for i := range min(senders, g.homes) {
		wg.Go(func() {
			if err := g.report(ctx, i, min(senders, g.homes)); err != nil {
				cancel(err) // the first one counts
			}
		})
	}
	wg.Go(func() { g.tell(ctx, out) })
	wg.Wait()
	select {
	case <-stopped:
		return nil
	default:
		return context.Cause(ctx)
	}
}

// period is the time between two readings of a sensor.
func (g *generator) period() time.Duration { return time.Duration(float64(time.Minute) / g.speed) }

// report sends the readings of each step-th home, from the first on, evenly spread over the
// period. A home's readings go as one batch: they have the same key.
func (g *generator) report(ctx context.Context, first, step int) error {
	sender, err := g.client.OpenSender(ctx, hubName, nil)
	if err != nil {
		return err
	}
	states := make([]bool, g.homes/step*len(g.sensors)+len(g.sensors)) // of each sensor of each home: whether its value is unusual
	start := time.Now()
	for round := 0; ; round++ {
		for home, n := first, 0; home < g.homes; home, n = home+step, n+1 {
			due := start.Add(time.Duration((float64(round) + float64(home)/float64(g.homes)) * float64(g.period())))
			if err := sleepUntil(ctx, due); err != nil {
				return nil // it is over
			}
			batch := make([]*client.Message, len(g.sensors))
			for i, name := range g.sensors {
				state := &states[n*len(g.sensors)+i]
				*state = next(typeOf(name), *state)
				if batch[i], err = read(home, name, *state).event(); err != nil {
					return err
				}
			}
			if err := sender.SendBatch(ctx, batch); err != nil {
				return err
			}
			g.sent.Add(int64(len(batch)))
		}
	}
}

// next returns whether a sensor's next value is unusual.
func next(t sensorType, isUnusual bool) bool {
	if isUnusual {
		return rand.IntN(2) == 0 // for two minutes, about
	}
	return rand.Float64() < time.Minute.Seconds()/t.every.Seconds()
}

// read returns what a sensor reports now.
func read(home int, sensor string, isUnusual bool) reading {
	t := typeOf(sensor)
	r := reading{Home: home, Sensor: sensor, Value: t.usual, At: time.Now().UnixMilli()}
	if isUnusual {
		r.Value = t.unusual
	}
	return r
}

func sleepUntil(ctx context.Context, t time.Time) error {
	wait := time.Until(t)
	if wait <= 0 {
		return ctx.Err() // late: go on as fast as it goes
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tell prints how much is sent, every ten seconds.
func (g *generator) tell(ctx context.Context, out io.Writer) {
	want := float64(g.homes*len(g.sensors)) / g.period().Seconds()
	for last := int64(0); ; {
		if sleepUntil(ctx, time.Now().Add(10*time.Second)) != nil {
			return
		}
		now := g.sent.Load()
		fmt.Fprintf(out, "%d readings/s of %v; %.0f/s are due\n", (now-last)/10, g.sensors, want)
		last = now
	}
}
