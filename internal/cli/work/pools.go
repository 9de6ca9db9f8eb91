// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/worker"
	"github.com/triagemq/triagemq/worker/program"
)

// logger returns the log of a worker process.
func (f *workFlags) logger() *slog.Logger {
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	options := &slog.HandlerOptions{Level: level}
	if f.JSON {
		return slog.New(slog.NewJSONHandler(f.Err, options))
	}
	return slog.New(slog.NewTextHandler(f.Err, options))
}

// run runs the pools until ctx ends, or one of them cannot go on.
func (f *workFlags) run(ctx context.Context, pools []config.Pool) error {
	log := f.logger()
	c, err := client.New(f.Address(), &client.Options{Name: "triagemq-work", RetryTimeout: math.MaxInt64, Log: log})
	if err != nil {
		return cli.Advise(err)
	}
	workers := make([]*worker.Pool, len(pools))
	var errs []error
	for i, p := range pools {
		workers[i], err = poolOf(p, c, log)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return cli.Usage(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make([]error, len(workers))
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() {
			ends[i] = w.Run(ctx)
			if ends[i] != nil {
				cancel() // the others finish what they have begun
			}
		})
	}
	wg.Wait()
	_ = c.Close() // everything that mattered was answered before
	return cli.Advise(errors.Join(ends...))
}

// selections are the rules by name.
var selections = map[string]worker.Selection{"": worker.ByOrder, "order": worker.ByOrder, "level": worker.ByLevel, "weight": worker.ByWeight}

// poolOf makes the pool that p describes.
func poolOf(p config.Pool, c *client.Client, log *slog.Logger) (*worker.Pool, error) {
	h := program.Handler{
		Command:   p.Exec,
		Dir:       p.Dir,
		KillAfter: p.KillAfter.Std(),
		MaxOutput: int(min(int64(p.MaxOutput), math.MaxInt32)),
		Log:       log,
	}
	for name, value := range p.Env {
		h.Env = append(h.Env, name+"="+value)
	}
	if p.Reply {
		h.Reply = c.Reply
	}
	if err := h.Check(); err != nil {
		return nil, err
	}
	w := &worker.Pool{
		Client:       c,
		Name:         p.Name,
		Select:       selections[p.Select],
		MinPriority:  client.Priority(p.MinPriority),
		MaxPriority:  client.Priority(p.MaxPriority),
		Slots:        p.Slots,
		Buffer:       p.Buffer,
		DurableLocks: p.DurableLocks,
		Handler:      h,
		Timeout:      p.Timeout.Std(),
		Grace:        p.Grace.Std(),
		Windows:      p.Windows,
		WhenSpare:    p.WhenSpare,
		SpareBeside:  p.SpareBeside,
		LatestStart:  p.LatestStart.Std(),
		Log:          log,
	}
	for _, s := range p.Sources {
		w.Sources = append(w.Sources, worker.Source{Entity: s.Entity, Weight: s.Weight})
	}
	switch first, most := p.Retry.First.Std(), p.Retry.Most.Std(); {
	case first == 0: // the default
	case first == most:
		w.Retry = worker.Constant(first)
	default:
		w.Retry = worker.Exponential(first, most)
	}
	if p.Preempt != nil {
		w.Preempt = &worker.Preemption{MinRun: p.Preempt.MinRun.Std(), Budget: p.Preempt.Budget}
	}
	if p.Sessions {
		w.Sessions = &worker.Sessions{Idle: p.SessionIdle.Std()}
	}
	if p.Scale != nil {
		w.Scale = &worker.Scale{Min: p.Scale.Min, Max: p.Scale.Max, CoolDown: p.Scale.CoolDown.Std()}
	}
	return w, nil
}
