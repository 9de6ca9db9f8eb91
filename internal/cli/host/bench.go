// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/pprof"
	"time"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/load"
	"github.com/triagemq/triagemq/internal/server"
)

// benchFlags are what bench can be told on its command line.
type benchFlags struct {
	load.Config
	mode     string
	embedded bool
	data     string // of the broker of --embedded
	quiet    bool
	profile  string
}

func BenchCommand(s cli.Streams) *cobra.Command {
	var f benchFlags
	var t *cli.Target
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a broker: throughput, latency, urgent messages past a backlog",
		Long: `Put a broker under load and report what it did.

A message counts as in when the broker has accepted it, which means that it is on
disk, and as out when it was received and settled. With --embedded a broker of its own
runs in this process, on a disk of its own that is removed afterwards.

With --hub events are sent to an event hub, in batches of 100 unless --batch says
otherwise, and read from all its partitions. An event counts as out when it was received.
Our own client reads events in batches; --single reads each in a delivery of its own, as
the SDKs do.

With --backlog so many messages are waiting before anything is measured; if the
queue is full before, that is an error. With
--urgent so many urgent messages are sent, one at a time, past that backlog, while
workers that hold one message each drain it as fast as they can; what is measured
then is the time from sending to receipt.`,
		Example: `  triagemq bench --embedded
  triagemq bench --embedded --urgent 500 --backlog 1000000 --receivers 16
  triagemq bench --embedded --hub events --partitions 16
  triagemq bench --connection-string amqp://localhost --queue demo --senders 8 --batch 50 --duration 30s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Hub != "" {
				f.leaveDefaults(cmd)
			}
			return bench(cmd.Context(), f, t)
		},
	}
	cmd, t = cli.ClientCommand(s, cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.embedded, "embedded", false, "run a broker in this process and measure that")
	fs.StringVar(&f.data, "data", "", "`directory` in which --embedded makes its store (default: where temporary files go)")
	fs.StringVar(&f.Queue, "queue", "bench", "`name` of the queue, which is created if need be; nobody else should use it")
	fs.StringVar(&f.Hub, "hub", "", "`name` of an event hub to use instead of a queue, created if need be")
	fs.IntVar(&f.Partitions, "partitions", 16, "partitions of the event hub")
	fs.IntVar(&f.Behind, "behind", 0, "connections that read the event hub from its oldest event meanwhile")
	fs.BoolVar(&f.Single, "single", false, "read each event of the hub in a delivery of its own, as the SDKs do")
	fs.StringVar(&f.mode, "mode", string(load.InOut), "send, receive or inout")
	fs.IntVar(&f.Senders, "senders", 4, "connections that send")
	fs.IntVar(&f.Receivers, "receivers", 4, "connections that receive")
	fs.IntVar(&f.Size, "size", 256, "`bytes` of a body")
	fs.IntVar(&f.Levels, "levels", 10, "priority levels that messages take turns in")
	fs.IntVar(&f.Window, "window", 500, "deliveries of a sender that may wait for their answer")
	fs.IntVar(&f.Batch, "batch", 1, "messages in a delivery; more than 1 sends batches")
	fs.IntVar(&f.Credit, "credit", 1000, "messages that a receiver is ready to hold")
	fs.IntVar(&f.Rate, "rate", 0, "messages a second that all senders send together (default as many as they can)")
	fs.DurationVar(&f.Duration, "duration", 0, "how long to send (default 10s without --count)")
	fs.Uint64Var(&f.Count, "count", 0, "how many messages to send, or to receive in mode receive")
	fs.Uint64Var(&f.Backlog, "backlog", 0, "messages to have waiting before anything is measured")
	fs.IntVar(&f.Urgent, "urgent", 0, "urgent messages to send past the backlog")
	fs.DurationVar(&f.Pause, "pause", time.Millisecond, "between the receipt of an urgent message and the next")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	fs.StringVar(&f.profile, "cpu-profile", "", "write a processor profile of this process to a `file`")
	return cmd
}

func bench(ctx context.Context, f benchFlags, t *cli.Target) error {
	cfg := f.Config
	cfg.Mode = load.Mode(f.mode)
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return cli.Usage(err)
	}
	if f.embedded {
		own, stop, err := startOwn(ctx, f)
		if err != nil {
			return err
		}
		defer stop()
		t.Connection = own
	}
	if err := createMissing(ctx, t, cfg); err != nil {
		return err
	}
	var err error
	if cfg.Target, err = load.ParseTarget(t.Address()); err != nil {
		return cli.Usage(err)
	}
	if !f.quiet {
		cfg.Progress = func(p load.Progress) {
			fmt.Fprintf(t.Err, "%-6s %4.0fs  in %9d %9.0f/s   out %9d %9.0f/s\n",
				p.Phase, p.Elapsed.Seconds(), p.In, p.InRate, p.Out, p.OutRate)
		}
	}
	stopProfile, err := startProfile(f.profile)
	if err != nil {
		return err
	}
	report, err := load.Run(ctx, cfg)
	if err := errors.Join(err, stopProfile()); err != nil {
		if _, ok := errors.AsType[*load.BacklogError](err); ok {
			return cli.WithAdvice(err, "if the queue is full, raise maxSizeInMegabytes or maxMessageCount with `triagemq queue update`, or lower --backlog or --size")
		}
		return cli.Advise(err)
	}
	if t.JSON {
		enc := json.NewEncoder(t.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	}
	report.Print(t.Out)
	return nil
}

// leaveDefaults leaves to package load what the command line does not say: a run on an
// event hub has other defaults.
func (f *benchFlags) leaveDefaults(cmd *cobra.Command) {
	for name, value := range map[string]*int{"window": &f.Window, "batch": &f.Batch, "credit": &f.Credit} {
		if !cmd.Flags().Changed(name) {
			*value = 0
		}
	}
}

// createMissing creates the queue or event hub if a broker of ours says that there is
// none. Of others, and of those that do not let us manage, the load will tell.
func createMissing(ctx context.Context, t *cli.Target, cfg load.Config) error {
	kind, name, properties := "queue", cfg.Queue, any(struct{}{})
	if cfg.Hub != "" {
		kind, name, properties = "hub", cfg.Hub, entity.Hub{PartitionCount: cfg.Partitions}
	}
	api, err := t.API()
	if err != nil {
		return err
	}
	path := cli.Path(kind+"s", name)
	if err := api.Do(ctx, http.MethodGet, path, nil, nil); !cli.NotFound(err) {
		return nil
	}
	if err := api.Do(ctx, http.MethodPut, path, properties, nil); err != nil {
		return fmt.Errorf("create %s %q: %w", kind, name, err)
	}
	return nil
}

// startOwn runs a broker in this process and returns its address. stop ends it
// and removes its store.
func startOwn(ctx context.Context, f benchFlags) (address string, stop func(), err error) {
	dir, err := os.MkdirTemp(f.data, "triagemq-bench-")
	if err != nil {
		return "", nil, fmt.Errorf("make a store: %w", err)
	}
	var cfg server.Config
	cfg.Data = dir
	cfg.Listeners = []string{"127.0.0.1:0"}
	cfg.Security.Dev = true
	cfg.Config = config.Default().Merge(cfg.Config)
	ready := make(chan string, 1)
	cfg.Ready = func(r server.Ready) { ready <- r.Addresses[0] }

	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, cfg, slog.New(slog.DiscardHandler)) }() // stop waits for it
	remove := func() { os.RemoveAll(dir) }
	select {
	case addr := <-ready:
		return "amqp://" + addr, func() { cancel(); <-done; remove() }, nil
	case err := <-done:
		cancel()
		remove()
		return "", nil, fmt.Errorf("start a broker: %w", err)
	}
}

// startProfile profiles this process into a file until stop; without a name it
// does nothing.
func startProfile(name string) (stop func() error, err error) {
	if name == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("profile: %w", err), file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
