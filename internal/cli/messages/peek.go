// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
)

// peekFlags are what peek can be told.
type peekFlags struct {
	*cli.Target
	cli.Source
	browseFlags
}

func PeekCommand(s cli.Streams) *cobra.Command {
	var f peekFlags
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use:   "peek QUEUE|TOPIC",
		Short: "Look at messages without taking them",
		Long: `Look at the messages of a queue or subscription in the order in which they came,
whatever their state, without taking them.`,
		Example: `  triagemq peek orders --count 20
  triagemq peek orders --filter "Priority = 'High' AND region = 'eu'"
  triagemq peek jobs --subscription high --full
  triagemq peek orders --dead-letter`,
		Args: cli.Exactly("QUEUE|TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args[0]) },
	})
	f.Target = t
	f.Source.Flags(cmd)
	f.browseFlags.flags(cmd)
	return cmd
}

func (f *peekFlags) run(ctx context.Context, name string) error {
	a, err := f.API()
	if err != nil {
		return err
	}
	in, err := boxOf(f.Source, name)
	if err != nil {
		return err
	}
	return f.print(ctx, f.Target, a, in)
}

// print shows the messages that the flags choose.
func (f *browseFlags) print(ctx context.Context, t *cli.Target, a *cli.API, in messageBox) error {
	p := &printer{Target: t, full: f.full, dead: in.dead, table: cli.NewTable("#NUMBER", "STATE", "#LEVEL", "CLASS", "ENQUEUED", "#FAILED", "SESSION", "BODY")}
	if in.dead {
		p.table = cli.NewTable("#NUMBER", "ENQUEUED", "#FAILED", "REASON", "DESCRIPTION", "BODY")
	}
	for m, err := range f.browse(ctx, a, in) {
		if err != nil {
			return err
		}
		if err := p.add(m); err != nil {
			return err
		}
	}
	p.end(in)
	return nil
}

// reasonColumn is the width of a column with reasons.
const reasonColumn = 40

// printer prints messages as they come, or as a table at the end.
type printer struct {
	*cli.Target
	full    bool
	dead    bool
	table   *cli.Table
	classes bool // one of the messages is in a class
	printed int
}

func (p *printer) add(m ShownMessage) error {
	p.printed++
	switch {
	case p.JSON:
		return cli.JSONLine(p.Out, m)
	case p.full:
		if p.printed > 1 {
			fmt.Fprintln(p.Out)
		}
		m.print(p.Out)
	case p.dead:
		p.table.Add(m.SequenceNumber, cli.TimeText(m.EnqueuedAt), m.DeliveryCount,
			cli.Short(m.DeadLetterReason, reasonColumn), cli.Short(m.DeadLetterDescription, reasonColumn), cli.Short(m.bodyText(), cli.BodyColumn))
	default:
		level := ""
		if m.Level != nil {
			level = fmt.Sprint(*m.Level)
		}
		p.classes = p.classes || m.Class != ""
		p.table.Add(m.SequenceNumber, m.State, level, m.Class, cli.TimeText(m.EnqueuedAt), m.DeliveryCount, m.SessionID, cli.Short(m.bodyText(), cli.BodyColumn))
	}
	return nil
}

// end prints the table; without messages it says so, to people only.
func (p *printer) end(in messageBox) {
	switch {
	case p.JSON:
	case p.printed == 0 && p.dead:
		fmt.Fprintf(p.Err, "There are no such dead letters in %s.\n", in.name)
	case p.printed == 0:
		fmt.Fprintf(p.Err, "There are no such messages in %s.\n", in.name)
	case !p.full:
		if !p.dead && !p.classes {
			p.table.Drop("CLASS")
		}
		p.table.Print(p.Out)
	}
}
