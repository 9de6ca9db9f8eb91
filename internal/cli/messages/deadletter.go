// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/cli"
)

// deadLetters is what the commands about dead letters have in common.
type deadLetters struct {
	*cli.Target
	subscription string
	transfer     bool
}

func DeadLetterCommand(s cli.Streams) *cobra.Command {
	var d deadLetters
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use:     "deadletter",
		Aliases: []string{"dlq"},
		Short:   "List, show, redrive and purge dead letters",
		Long: `Dead letters are messages that could not be processed: they failed too often, ran out
of time, or a consumer said so. They are kept, with the reason, until somebody decides.
Messages that could not be forwarded are kept apart, by the queue or subscription that
forwards, or by the topic; --transfer chooses those.

Filters are in the language of rules. The reason is a property like any other:
--filter "DeadLetterReason = 'MaxDeliveryCountExceeded'".`,
	})
	d.Target = t
	fs := cmd.PersistentFlags()
	fs.StringVarP(&d.subscription, "subscription", "s", "", "`name` of the topic's subscription")
	fs.BoolVar(&d.transfer, "transfer", false, "those that could not be forwarded")
	return cli.Group(cmd, d.list(), d.show(), d.redrive(), d.purge())
}

// on runs an operation on the dead letters of the entity that is named first.
func (d *deadLetters) on(do func(context.Context, *cli.API, messageBox, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		in, err := boxOf(cli.Source{Subscription: d.subscription, Dead: !d.transfer, Transfer: d.transfer}, args[0])
		if err != nil {
			return err
		}
		a, err := d.API()
		if err != nil {
			return err
		}
		return do(cmd.Context(), a, in, args[1:])
	}
}

func (d *deadLetters) list() *cobra.Command {
	var f browseFlags
	cmd := &cobra.Command{
		Use: "list QUEUE|TOPIC", Short: "List dead letters with their reasons", Args: cli.Exactly("QUEUE|TOPIC"),
		Example: `  triagemq deadletter list orders
  triagemq deadletter list jobs --subscription high --filter "region = 'eu'"
  triagemq deadletter list jobs --transfer`,
		RunE: d.on(func(ctx context.Context, a *cli.API, in messageBox, _ []string) error {
			return f.print(ctx, d.Target, a, in)
		}),
	}
	f.flags(cmd)
	return cmd
}

func (d *deadLetters) show() *cobra.Command {
	return &cobra.Command{
		Use: "show QUEUE|TOPIC NUMBER", Short: "Show one dead letter, all of it", Args: cli.Exactly("QUEUE|TOPIC", "NUMBER"),
		RunE: d.on(func(ctx context.Context, a *cli.API, in messageBox, args []string) error {
			if _, err := strconv.ParseUint(args[0], 10, 63); err != nil {
				return cli.Usage(fmt.Errorf("%q is not a sequence number", args[0]))
			}
			var m ShownMessage
			if err := a.Do(ctx, http.MethodGet, in.at("/"+args[0], nil), nil, &m); err != nil {
				return err
			}
			if d.JSON {
				return cli.AnswerJSON(d.Out, m)
			}
			m.print(d.Out)
			return nil
		}),
	}
}

// redriveFlags are what redrive and purge can be told.
type redriveFlags struct {
	browseFlags
	to    string
	rate  float64
	quiet bool
}

func (f *redriveFlags) progress(d *deadLetters) *cli.Progress {
	p := d.Progress(time.Now())
	if f.quiet || d.JSON {
		p.W = io.Discard
	}
	return p
}

func (d *deadLetters) redrive() *cobra.Command {
	var f redriveFlags
	cmd := &cobra.Command{
		Use: "redrive QUEUE|TOPIC", Short: "Move dead letters back to their queue", Args: cli.Exactly("QUEUE|TOPIC"),
		Long: `Move dead letters back to their queue, or elsewhere with --to. Each move is atomic.
--rate limits the number of messages moved per second. Messages that are
dead-lettered while it runs, for the first time or again, are not moved.`,
		Example: `  triagemq deadletter redrive orders
  triagemq deadletter redrive orders --filter "region = 'eu'" --rate 50
  triagemq deadletter redrive orders --to repair --count 10`,
		RunE: d.on(func(ctx context.Context, a *cli.API, in messageBox, _ []string) error {
			return d.moveAll(ctx, a, in, &f)
		}),
	}
	f.choose(cmd)
	fs := cmd.Flags()
	fs.IntVarP(&f.count, "count", "n", 0, "how many to move at most; 0 is all")
	fs.StringVar(&f.to, "to", "", "queue or topic to move them `to` (default: where they died)")
	fs.Float64Var(&f.rate, "rate", 0, "move at most so many a `second`; 0 is as fast as possible")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

// moveAtOnce is how many dead letters one request moves: few enough to tell how far
// it is, many enough to be quick.
const moveAtOnce = 1000

// redriveRequest and redriven are what the API takes and answers.
type redriveRequest struct {
	To     string       `json:"to,omitzero"`
	Filter string       `json:"filter,omitzero"`
	From   client.SeqNo `json:"from,omitzero"`
	Until  client.SeqNo `json:"until,omitzero"`
	Max    int          `json:"max,omitzero"`
}

type redriven struct {
	Moved   int          `json:"moved"`
	Skipped int          `json:"skipped"`
	Next    client.SeqNo `json:"next,omitzero"`
	Until   client.SeqNo `json:"until,omitzero"`
}

func (d *deadLetters) moveAll(ctx context.Context, a *cli.API, in messageBox, f *redriveFlags) error {
	if f.rate < 0 || f.count < 0 || f.from < 0 {
		return cli.Usage(fmt.Errorf("--rate, --count and --from are not negative"))
	}
	r := redriveRequest{To: f.to, Filter: f.filter, From: client.SeqNo(f.from)}
	p, start := f.progress(d), time.Now()
	var sum redriven
	for {
		r.Max = moveAtOnce
		if f.rate > 0 {
			r.Max = max(1, min(moveAtOnce, int(f.rate/10))) // ten requests a second
		}
		if f.count > 0 {
			r.Max = min(r.Max, f.count-sum.Moved)
		}
		var done redriven
		if err := a.Do(ctx, http.MethodPost, in.at("/redrive", nil), r, &done); err != nil {
			return fmt.Errorf("%w\n  %s moved before that", err, cli.Count(sum.Moved, "dead letter"))
		}
		sum.Moved, sum.Skipped = sum.Moved+done.Moved, sum.Skipped+done.Skipped
		p.At(time.Now(), sum.Moved, f.count)
		if done.Next == 0 || f.count > 0 && sum.Moved >= f.count {
			break
		}
		r.From, r.Until = done.Next, done.Until
		if f.rate > 0 {
			due := start.Add(time.Duration(float64(sum.Moved) / f.rate * float64(time.Second)))
			if err := until(ctx, due); err != nil {
				return err
			}
		}
	}
	p.Finish()
	if d.JSON {
		return cli.AnswerJSON(d.Out, redriven{Moved: sum.Moved, Skipped: sum.Skipped})
	}
	fmt.Fprintf(d.Out, "Moved %s of %s", cli.Count(sum.Moved, "dead letter"), in.name)
	if f.to != "" {
		fmt.Fprintf(d.Out, " to %s", f.to)
	}
	if sum.Skipped > 0 {
		fmt.Fprintf(d.Out, "; %d stay", sum.Skipped)
	}
	fmt.Fprintln(d.Out, ".")
	return nil
}

// until waits for a time, or for the end of ctx.
func until(ctx context.Context, due time.Time) error {
	select {
	case <-time.After(time.Until(due)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *deadLetters) purge() *cobra.Command {
	var f redriveFlags
	cmd := &cobra.Command{
		Use: "purge QUEUE|TOPIC", Short: "Remove dead letters permanently", Args: cli.Exactly("QUEUE|TOPIC"),
		Example: `  triagemq deadletter purge orders
  triagemq deadletter purge orders --filter "DeadLetterReason = 'TTLExpiredException'"`,
		RunE: d.on(func(ctx context.Context, a *cli.API, in messageBox, _ []string) error {
			return d.purgeAll(ctx, a, in, &f)
		}),
	}
	f.choose(cmd)
	fs := cmd.Flags()
	fs.IntVarP(&f.count, "count", "n", 0, "how many to remove at most; 0 is all")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

// purgeAll removes what is chosen, in as many requests as the API wants.
func (d *deadLetters) purgeAll(ctx context.Context, a *cli.API, in messageBox, f *redriveFlags) error {
	if f.count < 0 || f.from < 0 {
		return cli.Usage(fmt.Errorf("--count and --from are not negative"))
	}
	query := url.Values{}
	if f.filter != "" {
		query.Set("filter", f.filter)
	}
	next, p := client.SeqNo(f.from), f.progress(d)
	var sum cli.Removed
	for {
		if next > 0 {
			query.Set("from", fmt.Sprint(next))
		}
		if f.count > 0 {
			query.Set("max", fmt.Sprint(f.count-sum.Removed))
		}
		var done cli.Removed
		if err := a.Do(ctx, http.MethodDelete, in.at("", query), nil, &done); err != nil {
			return fmt.Errorf("%w\n  %s removed before that", err, cli.Count(sum.Removed, "dead letter"))
		}
		sum.Removed += done.Removed
		p.At(time.Now(), sum.Removed, f.count)
		if next = done.Next; next == 0 {
			p.Finish()
			return d.purged(sum, in)
		}
	}
}

func (d *deadLetters) purged(answer cli.Removed, in messageBox) error {
	if d.JSON {
		return cli.AnswerJSON(d.Out, answer)
	}
	fmt.Fprintf(d.Out, "Removed %s of %s.\n", cli.Count(answer.Removed, "dead letter"), in.name)
	return nil
}
