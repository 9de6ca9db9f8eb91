// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
)

// measured is what was measured of a queue, as the API tells it.
type measured struct {
	Entity     string          `json:"entity"`
	Discipline string          `json:"discipline"`
	Saturated  bool            `json:"saturated"`
	Locked     int64           `json:"locked"`
	Consumers  int             `json:"consumers"`
	Classes    []measuredClass `json:"classes"`
	Operations []struct {
		Operation string `json:"operation"`
		Total     uint64 `json:"total"`
	} `json:"operations"`
	PerMessage float64 `json:"operationsPerMessage"`
}

type measuredClass struct {
	Name         string   `json:"name"`
	Wait         summary  `json:"wait"`
	Service      summary  `json:"service"`
	Arrived      flow     `json:"arrived"`
	Completed    flow     `json:"completed"`
	DeadLettered flow     `json:"deadLettered"`
	Refused      flow     `json:"refused"`
	Evicted      flow     `json:"evicted"`
	Expired      flow     `json:"expired"`
	Waiting      int64    `json:"waiting"`
	OldestAge    float64  `json:"oldestAge"`
	DrainSeconds *float64 `json:"drainSeconds"`
	Objective    *promise `json:"objective"`
	Expected     *struct {
		Expected float64 `json:"expected"`
		Actual   float64 `json:"actual"`
		State    string  `json:"state"`
	} `json:"expectedRate"`
}

type summary struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
}

type flow struct {
	Total     uint64 `json:"total"`
	PerSecond struct {
		Minute float64 `json:"1m"`
	} `json:"perSecond"`
}

type promise struct {
	Wait    float64    `json:"wait"`
	Target  float64    `json:"target"`
	State   string     `json:"state"`
	Short   burnWindow `json:"short"`
	Long    burnWindow `json:"long"`
	Overdue float64    `json:"overdue"`
}

type burnWindow struct {
	Window float64 `json:"window"`
	Share  float64 `json:"share"`
	Burn   float64 `json:"burn"`
}

func (c measuredClass) name() string {
	if c.Name == "" {
		return "(none)"
	}
	return c.Name
}

// measurements reads what was measured of one queue, or of all.
func measurements(ctx context.Context, a *cli.API, args []string, from cli.Source) ([]measured, error) {
	if len(args) == 1 {
		var m measured
		err := a.Do(ctx, http.MethodGet, cli.Path("objectives", from.Of(args[0])), nil, &m)
		return []measured{m}, err
	}
	return cli.ListAll[measured](ctx, a, "/objectives", nil)
}

// measuring makes a command that shows measurements of one queue, or of all. Then ofAll,
// which may be nil, shows more.
func measuring(s cli.Streams, cmd *cobra.Command, show func(*cli.Target, []measured), ofAll func(context.Context, *cli.Target, *cli.API)) *cobra.Command {
	cmd, t := cli.ClientCommand(s, cmd)
	var from cli.Source
	cmd.Flags().StringVarP(&from.Subscription, "subscription", "s", "", "`name` of the topic's subscription that is meant")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return cli.Usage(fmt.Errorf("%s takes one QUEUE, or none for all", cmd.CommandPath()))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := t.API()
		if err != nil {
			return err
		}
		all, err := measurements(cmd.Context(), a, args, from)
		if err != nil {
			return err
		}
		if t.JSON {
			return cli.AnswerJSON(t.Out, all)
		}
		show(t, all)
		if len(args) == 0 && ofAll != nil {
			ofAll(cmd.Context(), t, a)
		}
		return nil
	}
	return cmd
}

// storedMemory says how much of the memory for messages is used. Who may not manage the
// namespace is not told.
func storedMemory(ctx context.Context, t *cli.Target, a *cli.API) {
	var n struct {
		Memory struct {
			Messages int64 `json:"messagesInBytes"`
			Limit    int64 `json:"messagesLimitInBytes"`
		} `json:"storedMemory"`
	}
	if err := a.Do(ctx, http.MethodGet, "/namespace", nil, &n); err != nil || n.Memory.Limit == 0 {
		return
	}
	fmt.Fprintf(t.Out, "\nThe messages of all queues and subscriptions take %s of the %s of memory that there is for them.\n",
		cli.BytesText(n.Memory.Messages), cli.BytesText(n.Memory.Limit))
}

func ObjectivesCommand(s cli.Streams) *cobra.Command {
	return measuring(s, &cobra.Command{
		Use:   "objectives [QUEUE]",
		Short: "Show what is promised and whether it is kept",
		Long: `Show for each class that promises something whether it is met, at risk or missed: the
share that started in time in the last minutes and in the last hour, and how many
messages are late already.`,
	}, func(t *cli.Target, all []measured) {
		rows := cli.NewTable("QUEUE", "CLASS", "PROMISE", "STATE", "RECENTLY", "LONGER", "#LATE", "#WAITING", "OLDEST")
		for _, m := range all {
			for _, c := range m.Classes {
				if o := c.Objective; o != nil {
					rows.Add(m.Entity, c.name(), fmt.Sprintf("%s within %s", percent(o.Target), seconds(o.Wait)), o.State,
						fmt.Sprintf("%s of %s", percent(o.Short.Share), seconds(o.Short.Window)),
						fmt.Sprintf("%s of %s", percent(o.Long.Share), seconds(o.Long.Window)),
						fmt.Sprintf("%.0f", o.Overdue), c.Waiting, seconds(c.OldestAge))
				}
				if e := c.Expected; e != nil {
					rows.Add(m.Entity, c.name(), fmt.Sprintf("%.4g/s worked off", e.Expected), e.State,
						fmt.Sprintf("%.4g/s", e.Actual), "", "", c.Waiting, seconds(c.OldestAge))
				}
			}
		}
		if len(rows.Rows) == 1 {
			fmt.Fprintln(t.Out, "No class has an objective; add one with `triagemq policy set`.")
			return
		}
		rows.Print(t.Out)
	}, nil)
}

// perSecond writes a rate; one message in a minute is not none.
func perSecond(rate float64) string {
	if rate > 0 && rate < .1 {
		return fmt.Sprintf("%.3f", rate)
	}
	return fmt.Sprintf("%.1f", rate)
}

func StatsCommand(s cli.Streams) *cobra.Command {
	return measuring(s, &cobra.Command{
		Use:   "stats [QUEUE]",
		Short: "Show arrival rate, completion rate and wait time by class",
	}, func(t *cli.Target, all []measured) {
		rows := cli.NewTable("QUEUE", "CLASS", "#WAITING", "OLDEST", "#IN/S", "#OUT/S", "WAIT 50%", "95%", "99%", "WORK 50%", "DRAINED", "#REFUSED", "#DEAD", "#EXPIRED")
		for _, m := range all {
			for _, c := range m.Classes {
				drain := "never"
				if c.DrainSeconds != nil {
					drain = seconds(*c.DrainSeconds)
				}
				rows.Add(m.Entity, c.name(), c.Waiting, seconds(c.OldestAge),
					perSecond(c.Arrived.PerSecond.Minute), perSecond(c.Completed.PerSecond.Minute),
					seconds(c.Wait.P50), seconds(c.Wait.P95), seconds(c.Wait.P99), seconds(c.Service.P50), drain,
					c.Refused.Total, c.DeadLettered.Total, c.Expired.Total)
			}
		}
		rows.Print(t.Out)
		for _, m := range all {
			if m.Saturated {
				fmt.Fprintf(t.Out, "%s is saturated: levels are served by weight until the backlog shrinks\n", m.Entity)
			}
		}
		if len(all) != 1 {
			return
		}
		ops := cli.NewTable("OPERATION", "#TOTAL")
		for _, o := range all[0].Operations {
			ops.Add(o.Operation, o.Total)
		}
		fmt.Fprintln(t.Out)
		ops.Print(t.Out)
		fmt.Fprintf(t.Out, "%.2f operations for each message worked off\n", all[0].PerMessage)
	}, storedMemory)
}

func percent(share float64) string { return fmt.Sprintf("%.4g%%", 100*share) }

// seconds writes a length of time for people.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d == 0:
		return "-"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second / 10).String()
}
