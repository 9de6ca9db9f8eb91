// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// peekFlags are what peek can be told.
type peekFlags struct {
	*target
	source
	browseFlags
}

func peekCommand(s streams) *cobra.Command {
	var f peekFlags
	cmd, t := clientCommand(s, &cobra.Command{
		Use:   "peek QUEUE|TOPIC",
		Short: "Look at messages without taking them",
		Long: `Look at the messages of a queue or subscription in the order in which they came,
whatever their state, without taking them.`,
		Example: `  triagemq peek orders --count 20
  triagemq peek orders --filter "Priority = 'High' AND region = 'eu'"
  triagemq peek jobs --subscription high --full
  triagemq peek orders --dead-letter`,
		Args: exactly("QUEUE|TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args[0]) },
	})
	f.target = t
	f.source.flags(cmd)
	f.browseFlags.flags(cmd)
	return cmd
}

func (f *peekFlags) run(ctx context.Context, name string) error {
	a, err := f.api()
	if err != nil {
		return err
	}
	in, err := boxOf(f.source, name)
	if err != nil {
		return err
	}
	return f.print(ctx, f.target, a, in)
}

// print shows the messages that the flags choose.
func (f *browseFlags) print(ctx context.Context, t *target, a *api, in messageBox) error {
	p := &printer{target: t, full: f.full, dead: in.dead, table: newTable("#NUMBER", "STATE", "#LEVEL", "CLASS", "ENQUEUED", "#FAILED", "SESSION", "BODY")}
	if in.dead {
		p.table = newTable("#NUMBER", "ENQUEUED", "#FAILED", "REASON", "DESCRIPTION", "BODY")
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

// Widths of columns with text that can be long.
const (
	bodyColumn   = 60
	reasonColumn = 40
)

// printer prints messages as they come, or as a table at the end.
type printer struct {
	*target
	full    bool
	dead    bool
	table   *table
	classes bool // one of the messages is in a class
	printed int
}

func (p *printer) add(m shownMessage) error {
	p.printed++
	switch {
	case p.json:
		return jsonLine(p.out, m)
	case p.full:
		if p.printed > 1 {
			fmt.Fprintln(p.out)
		}
		m.print(p.out)
	case p.dead:
		p.table.add(m.SequenceNumber, timeText(m.EnqueuedAt), m.DeliveryCount,
			short(m.DeadLetterReason, reasonColumn), short(m.DeadLetterDescription, reasonColumn), short(m.bodyText(), bodyColumn))
	default:
		level := ""
		if m.Level != nil {
			level = fmt.Sprint(*m.Level)
		}
		p.classes = p.classes || m.Class != ""
		p.table.add(m.SequenceNumber, m.State, level, m.Class, timeText(m.EnqueuedAt), m.DeliveryCount, m.SessionID, short(m.bodyText(), bodyColumn))
	}
	return nil
}

// end prints the table; without messages it says so, to people only.
func (p *printer) end(in messageBox) {
	switch {
	case p.json:
	case p.printed == 0 && p.dead:
		fmt.Fprintf(p.err, "There are no such dead letters in %s.\n", in.name)
	case p.printed == 0:
		fmt.Fprintf(p.err, "There are no such messages in %s.\n", in.name)
	case !p.full:
		if !p.dead && !p.classes {
			p.table.drop("CLASS")
		}
		p.table.print(p.out)
	}
}
