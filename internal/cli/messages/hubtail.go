// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/entity"
)

// tailFlags are what tail can be told.
type tailFlags struct {
	*cli.Target
	group      string
	partitions []string
	from       string
	count      int
	wait       time.Duration
	bodyOnly   bool
}

// HubTailCommand shows events as they come.
func HubTailCommand(s cli.Streams) *cobra.Command {
	var f tailFlags
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use:   "tail HUB",
		Short: "Show events as they come",
		Long: `Show the events of an event hub as they come, of all its partitions or of some, until
it is interrupted. Reading removes nothing and moves no checkpoint; other readers get the
same events. A group has space for five such readers at a partition, and for none where
a reader with an epoch is, as event processors are: a group of its own avoids both.

--from begins earlier: earliest is the oldest event there is, 10m is ten minutes ago, and a
time such as 2026-01-31T12:00:00Z that time. A number is that of an event: it begins
with the next one.

With --wait the exit code is 1 if no event came.`,
		Example: `  triagemq hub tail clicks
  triagemq hub tail clicks --from 10m --group debugging --json
  triagemq hub tail clicks --partition 0 --from earliest --count 10
  triagemq hub tail clicks --from earliest --wait 1s --body-only > bodies.txt`,
		Args: cli.Exactly("HUB"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args[0]) },
	})
	f.Target = t
	fs := cmd.Flags()
	fs.StringVar(&f.group, "group", entity.DefaultGroup, "consumer `group` to read as")
	fs.StringSliceVar(&f.partitions, "partition", nil, "`number` of a partition; may be repeated (default all)")
	fs.StringVar(&f.from, "from", "latest", "where to begin: latest, earliest, a `time`, how long ago, or the number of an event")
	fs.IntVarP(&f.count, "count", "n", 0, "how many to show; 0 is all that come")
	fs.DurationVarP(&f.wait, "wait", "w", 0, "how long to wait for the next one; 0 is until it comes")
	fs.BoolVar(&f.bodyOnly, "body-only", false, "print nothing but bodies, each with a line end")
	cli.Exclusive(cmd, "json", "body-only")
	return cmd
}

// arrived is events of one partition.
type arrived struct {
	partition string
	events    []*client.Received
	err       error
}

func (f *tailFlags) run(ctx context.Context, hub string) error {
	if f.count < 0 || f.wait < 0 {
		return cli.Usage(errors.New("--count and --wait must not be negative"))
	}
	options, err := f.options(time.Now())
	if err != nil {
		return err
	}
	c, done, err := f.Dial(ctx)
	if err != nil {
		return err
	}
	defer done()
	if len(f.partitions) == 0 {
		if f.partitions, err = c.Partitions(ctx, hub); err != nil {
			return adviseHub(err)
		}
	}
	tailing, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	events := make(chan arrived)
	for _, p := range f.partitions {
		r, err := c.OpenEventReader(ctx, hub, p, options)
		if err != nil {
			return adviseHub(err)
		}
		readers.Go(func() { follow(tailing, p, r, events) })
	}
	shown, err := f.show(ctx, events)
	if err == nil && shown == 0 && ctx.Err() == nil {
		err = fmt.Errorf("no event came from %s within %v", hub, f.wait)
	}
	return err
}

// follow hands over what comes from a partition, until ctx ends or reading fails.
func follow(ctx context.Context, partition string, r *client.EventReader, to chan<- arrived) {
	const most = 100
	for ctx.Err() == nil {
		events, err := r.Receive(ctx, most)
		select {
		case to <- arrived{partition, events, err}:
		case <-ctx.Done():
		}
		if err != nil {
			return
		}
	}
}

// show prints events until there are enough, none has come for long enough, or the user
// has seen enough. It returns how many.
func (f *tailFlags) show(ctx context.Context, from <-chan arrived) (shown int, err error) {
	for {
		var late <-chan time.Time
		if f.wait > 0 {
			late = time.After(f.wait)
		}
		select {
		case <-ctx.Done():
			return shown, nil // that is how it ends
		case <-late:
			return shown, nil
		case a := <-from:
			if a.err != nil && ctx.Err() == nil {
				return shown, adviseHub(a.err)
			}
			for _, e := range a.events {
				if err := f.print(a.partition, e, shown); err != nil {
					return shown, err
				}
				if shown++; shown == f.count {
					return shown, nil
				}
			}
		}
	}
}

// options reads --group and --from.
func (f *tailFlags) options(now time.Time) (*client.EventReaderOptions, error) {
	o := &client.EventReaderOptions{Group: f.group}
	switch strings.ToLower(f.from) {
	case "latest":
		o.Latest = true
		return o, nil
	case "earliest":
		return o, nil
	}
	if n, err := strconv.ParseInt(f.from, 10, 64); err == nil {
		after := client.SeqNo(n)
		o.After = &after
		return o, nil
	}
	if d, err := entity.ParseDuration(f.from); err == nil {
		o.Since = now.Add(-d.Std())
		return o, nil
	}
	at, err := time.Parse(time.RFC3339, f.from)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("--from %q is neither latest nor earliest, nor a time such as 2026-01-31T12:00:00Z, "+
			"nor how long ago such as 10m, nor the number of an event", f.from))
	}
	o.Since = at
	return o, nil
}

// shownEvent is an event as programs are shown it.
type shownEvent struct {
	Partition    string `json:"partition"`
	PartitionKey string `json:"partitionKey,omitzero"`
	ShownMessage
	// These mean nothing for an event.
	Priority      any  `json:"priority,omitempty"`
	DeliveryCount *int `json:"deliveryCount,omitempty"`
}

func (f *tailFlags) print(partition string, e *client.Received, before int) error {
	shown := shownEvent{Partition: partition, PartitionKey: e.PartitionKey, ShownMessage: present(e)}
	switch {
	case f.JSON:
		return cli.JSONLine(f.Out, shown)
	case f.bodyOnly && e.Value == nil:
		_, err := f.Out.Write(append(e.Body, '\n'))
		return err
	case f.bodyOnly:
		_, err := fmt.Fprintln(f.Out, shown.bodyText())
		return err
	}
	if before > 0 {
		fmt.Fprintln(f.Out)
	}
	parts := []string{fmt.Sprintf("partition %s  #%d", partition, e.SeqNo), cli.TimeText(e.Enqueued)}
	for _, p := range []struct{ name, value string }{
		{"key", e.PartitionKey}, {"id", e.ID}, {"subject", e.Subject}, {"correlation", e.CorrelationID},
	} {
		if p.value != "" {
			parts = append(parts, p.name+" "+cli.OneLine(p.value))
		}
	}
	fmt.Fprintln(f.Out, strings.Join(parts, "  "))
	shown.printContent(f.Out)
	return nil
}

// adviseHub says what to do about errors of hubs.
func adviseHub(err error) error {
	switch {
	case errors.Is(err, client.ErrNotFound):
		return cli.WithAdvice(err, "`triagemq hub list` shows what there is, `triagemq hub show NAME` its groups; `triagemq hub create NAME` makes a hub")
	case errors.Is(err, client.ErrNotAllowed), errors.Is(err, client.ErrQuota): // an owner, or too many others
		return cli.WithAdvice(err, "make a group for yourself with `triagemq group create HUB NAME`, and name it with --group")
	}
	return cli.Advise(err)
}
