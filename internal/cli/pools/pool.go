// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
)

// pool is a pool as the API shows it.
type pool struct {
	Name         string     `json:"name"`
	Source       string     `json:"source"`
	Sources      []string   `json:"sources"`
	Paused       bool       `json:"paused"`
	OrderedSlots int        `json:"orderedSlots"`
	Slots        int        `json:"slots"`
	Busy         int        `json:"busy"`
	Suspended    int        `json:"suspended"`
	Retrying     int        `json:"retrying"`
	PerSecond    float64    `json:"completedPerSecond"`
	Completed    uint64     `json:"completed"`
	Failed       uint64     `json:"failed"`
	Instances    []instance `json:"instances"`
}

// instance is one process of a pool.
type instance struct {
	Host      string  `json:"host"`
	Process   int     `json:"process"`
	Slots     int     `json:"slots"`
	Busy      int     `json:"busy"`
	Suspended int     `json:"suspended"`
	Retrying  int     `json:"retrying"`
	Paused    bool    `json:"paused"`
	Idle      string  `json:"idle"`
	PerSecond float64 `json:"completedPerSecond"`
}

// state is what a pool does, in a word or two.
func (p pool) state() string {
	switch {
	case len(p.Instances) == 0 && p.Paused:
		return "paused, not running"
	case len(p.Instances) == 0:
		return "not running"
	case p.Paused:
		return "paused"
	}
	idle := p.Instances[0].Idle
	for _, i := range p.Instances[1:] {
		if i.Idle != idle {
			idle = ""
		}
	}
	return cmp.Or(idle, "working")
}

// state is what a process does.
func (i instance) state() string {
	if i.Idle != "" {
		return i.Idle
	}
	if i.Paused {
		return "paused"
	}
	return "working"
}

// slots is how many slots there are, and that they were ordered.
func (p pool) slots() string {
	if p.OrderedSlots > 0 {
		return fmt.Sprintf("%d (ordered)", p.Slots)
	}
	return strconv.Itoa(p.Slots)
}

// PoolCommand has the commands about worker pools.
func PoolCommand(s cli.Streams) *cobra.Command {
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use:   "pool",
		Short: "List, pause, resume and resize worker pools",
		Long: `Worker pools announce themselves to the broker. Pools of one name are paused, resumed and
resized together, in all their processes. Nothing is lost by any of these.`,
	})
	resize := order(t, "resize NAME SLOTS", "Set how many handlers each process of a pool runs at a time",
		`Set how many handlers each process of a pool runs at a time. 0 gives the pool back its own
setting. Handlers above the new number run to their end.`, []string{"NAME", "SLOTS"})
	return cli.Group(cmd,
		listCommand(t),
		order(t, "pause NAME", "Have a pool take no more messages",
			`Have a pool take no more messages. Running tasks that can be suspended are; the others run
to their end. The messages of suspended tasks stay locked.`, []string{"NAME"}),
		order(t, "resume NAME", "Let a paused pool go on", "", []string{"NAME"}),
		resize)
}

func listCommand(t *cli.Target) *cobra.Command {
	var prefix string
	var processes bool
	cmd := &cobra.Command{
		Use: "list", Short: "List worker pools with what they do", Args: cli.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := t.API()
			if err != nil {
				return err
			}
			items, err := cli.ListAll[json.RawMessage](cmd.Context(), a, "/pools", url.Values{"prefix": {prefix}})
			if err != nil {
				return err
			}
			if t.JSON {
				return cli.AnswerJSON(t.Out, items)
			}
			ps := make([]pool, len(items))
			for i, item := range items {
				if err := json.Unmarshal(item, &ps[i]); err != nil {
					return err
				}
			}
			if len(ps) == 0 {
				fmt.Fprintln(t.Err, "There are no such pools.")
				return nil
			}
			table := poolTable
			if processes {
				table = processTable
			}
			table(ps).Print(t.Out)
			return nil
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only names that `begin` with this")
	cmd.Flags().BoolVar(&processes, "processes", false, "a line for each process")
	return cmd
}

func poolTable(ps []pool) *cli.Table {
	rows := cli.NewTable("NAME", "SOURCES", "STATE", "#PROCESSES", "#SLOTS", "#BUSY", "#SUSPENDED", "#RETRYING", "#DONE/S", "#DONE", "#FAILED")
	for _, p := range ps {
		rows.Add(p.Name, cli.Short(strings.Join(p.Sources, ", "), cli.BodyColumn), p.state(), len(p.Instances), p.slots(), p.Busy, p.Suspended,
			p.Retrying, fmt.Sprintf("%.1f", p.PerSecond), p.Completed, p.Failed)
	}
	return rows
}

func processTable(ps []pool) *cli.Table {
	rows := cli.NewTable("NAME", "HOST", "#PROCESS", "STATE", "#SLOTS", "#BUSY", "#SUSPENDED", "#RETRYING", "#DONE/S")
	for _, p := range ps {
		for _, i := range p.Instances {
			rows.Add(p.Name, i.Host, i.Process, i.state(), i.Slots, i.Busy, i.Suspended, i.Retrying, fmt.Sprintf("%.1f", i.PerSecond))
		}
	}
	return rows
}

// order makes a command that changes the orders of a pool.
func order(t *cli.Target, use, short, long string, args []string) *cobra.Command {
	verb, _, _ := strings.Cut(use, " ")
	var source string
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cli.Exactly(args...),
		RunE: func(cmd *cobra.Command, args []string) error {
			var body any
			if len(args) == 2 {
				slots, err := strconv.Atoi(args[1])
				if err != nil || slots < 0 {
					return cli.Usage(fmt.Errorf("%q is no number of slots", args[1]))
				}
				body = map[string]int{"slots": slots}
			}
			a, err := t.API()
			if err != nil {
				return err
			}
			return send(cmd.Context(), t, a, verb, args[0], source, body)
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "only the pool at this `queue` or subscription, if several have the name")
	return cmd
}

// done says what an order has done.
var done = map[string]string{"pause": "Paused", "resume": "Resumed", "resize": "Resized"}

func send(ctx context.Context, t *cli.Target, a *cli.API, verb, name, source string, body any) error {
	path := cli.Path("pools", name, verb)
	if source != "" {
		path += "?" + url.Values{"source": {source}}.Encode()
	}
	var raw json.RawMessage
	if err := a.Do(ctx, http.MethodPost, path, body, &raw); err != nil {
		return err
	}
	if t.JSON {
		return cli.AnswerJSON(t.Out, raw)
	}
	var answer struct {
		Items []pool `json:"items"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return err
	}
	for _, p := range answer.Items {
		fmt.Fprintf(t.Out, "%s pool %s at %s, %s.\n", done[verb], cli.OneLine(p.Name), cli.OneLine(p.Source),
			processes(len(p.Instances)))
	}
	return nil
}

// processes is a number of processes.
func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return strconv.Itoa(n) + " processes"
}
