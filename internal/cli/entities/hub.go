// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/entity"
)

var hubProperties = []property{
	{"partitionCount", aNumber, "`partitions`, 1 to 1024; more can be added later, none removed"},
	{"messageRetention", aDuration, "how `long` events are kept at least: 1h, 7d, forever"},
	{"maxPartitionSizeInMegabytes", aNumber, "`megabytes` a partition may have before its oldest events go; 0 is any number"},
	{"maxMessageSizeInKilobytes", aNumber, "`kilobytes` a batch may have"},
	{"status", aText, "`state`: Active, Disabled, SendDisabled or ReceiveDisabled"},
	{"userMetadata", aText, "`text` for your own use"},
}

// HubCommand is the command about event hubs, with more commands below it.
func HubCommand(s cli.Streams, more ...*cobra.Command) *cobra.Command {
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use: "hub", Short: "Create, list, show, change and delete event hubs",
		Example: `  triagemq hub create clicks --partition-count 8 --message-retention 7d --group dashboard
  triagemq hub show clicks
  triagemq hub update clicks --message-retention 1d`,
	})
	k := &hubCommand{entityCommand{
		Target: t, noun: "hub", args: []string{"NAME"},
		all:        func([]string) string { return "/hubs" },
		properties: hubProperties,
	}}
	var groups []string
	k.prepare = func(_ *cobra.Command, definition map[string]any) error {
		var gs []entity.ConsumerGroup
		for _, name := range groups {
			gs = append(gs, entity.ConsumerGroup{Name: name})
		}
		if gs != nil {
			definition["consumerGroups"] = gs
		}
		return nil
	}
	create := k.createCommand()
	create.Flags().StringSliceVar(&groups, "group", nil, "consumer `group` besides $Default; may be repeated")
	return cli.Group(cmd, append([]*cobra.Command{create, k.listCommand(), k.showCommand(), k.updateCommand(), k.deleteCommand()}, more...)...)
}

// hubCommand has what hubs have instead of messages.
type hubCommand struct{ entityCommand }

// hubView is an event hub as the API shows it.
type hubView struct {
	Definition map[string]any `json:"definition"`
	Runtime    struct {
		Unavailable string          `json:"unavailable"`
		Events      int64           `json:"events"`
		Bytes       int64           `json:"sizeInBytes"`
		In          flowView        `json:"in"`
		Out         flowView        `json:"out"`
		Readers     int             `json:"readers"`
		LastEvent   time.Time       `json:"lastEvent"`
		CreatedAt   time.Time       `json:"createdAt"`
		UpdatedAt   time.Time       `json:"updatedAt"`
		AccessedAt  time.Time       `json:"accessedAt"`
		Groups      []groupRuntime  `json:"groups"`
		Partitions  []partitionView `json:"partitions"`
	} `json:"runtime"`
}

type flowView struct {
	Events    uint64  `json:"events"`
	Bytes     uint64  `json:"bytes"`
	PerSecond float64 `json:"perSecond"`
}

// String is the events a second.
func (f flowView) String() string { return strconv.FormatFloat(f.PerSecond, 'f', 1, 64) }

type groupRuntime struct {
	Name       string  `json:"name"`
	Readers    int     `json:"readers"`
	Partitions int     `json:"partitions"`
	LagEvents  int64   `json:"lagEvents"`
	LagBytes   int64   `json:"lagBytes"`
	LagSeconds float64 `json:"lagSeconds"`
}

type partitionView struct {
	ID        string       `json:"id"`
	First     int64        `json:"firstSequenceNumber"`
	Last      int64        `json:"lastSequenceNumber"`
	LastEvent time.Time    `json:"lastEvent"`
	Bytes     int64        `json:"sizeInBytes"`
	In        flowView     `json:"in"`
	Out       flowView     `json:"out"`
	Readers   []readerView `json:"readers"`
}

type readerView struct {
	Group      string    `json:"group"`
	Name       string    `json:"name"`
	Epoch      *int64    `json:"epoch"`
	Next       int64     `json:"nextSequenceNumber"`
	LagEvents  int64     `json:"lagEvents"`
	LagBytes   int64     `json:"lagBytes"`
	LagSeconds float64   `json:"lagSeconds"`
	Since      time.Time `json:"since"`
}

func (v hubView) state() string {
	s, _ := v.Definition["status"].(string)
	if v.Runtime.Unavailable != "" {
		return s + ", not available"
	}
	return s
}

func (k *hubCommand) listCommand() *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use: "list", Short: "List event hubs with their figures", Args: cli.Exactly(),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, _ []string) error {
			items, err := cli.ListAll[json.RawMessage](cmd.Context(), a, "/hubs", url.Values{"prefix": {prefix}})
			if err != nil {
				return err
			}
			if k.JSON {
				return cli.AnswerJSON(k.Out, items)
			}
			if len(items) == 0 {
				fmt.Fprintln(k.Err, "There are no such hubs.")
				return nil
			}
			t := cli.NewTable("NAME", "STATE", "#PARTITIONS", "#EVENTS", "#SIZE", "#IN/S", "#OUT/S", "#GROUPS", "#READERS", "LAST EVENT")
			for _, item := range items {
				var v hubView
				if err := json.Unmarshal(item, &v); err != nil {
					return err
				}
				r := v.Runtime
				t.Add(v.Definition["name"], v.state(), v.Definition["partitionCount"], r.Events, cli.BytesText(r.Bytes), r.In, r.Out,
					len(r.Groups), r.Readers, cli.TimeText(r.LastEvent))
			}
			t.Print(k.Out)
			return nil
		}),
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only names that `begin` with this")
	return cmd
}

func (k *hubCommand) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: k.use("show"), Short: "Show an event hub: properties, partitions, groups, readers", Args: cli.Exactly(k.args...),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			var raw json.RawMessage
			if err := a.Do(cmd.Context(), http.MethodGet, k.one(args), nil, &raw); err != nil {
				return err
			}
			if k.JSON {
				return cli.AnswerJSON(k.Out, raw)
			}
			var v hubView
			if err := json.Unmarshal(raw, &v); err != nil {
				return err
			}
			fmt.Fprintln(k.Out, k.name(args))
			v.print(k.Out)
			return nil
		}),
	}
}

// print shows everything about a hub.
func (v hubView) print(w io.Writer) {
	r := v.Runtime
	t := cli.NewTable("  state", v.state())
	for _, name := range slices.Sorted(maps.Keys(v.Definition)) {
		switch name {
		case "name", "status", "consumerGroups", "authorizationRules": // told elsewhere, or not for every eye
		default:
			t.Add("  "+name, v.Definition[name])
		}
	}
	t.Add("  created", cli.TimeText(r.CreatedAt))
	t.Add("  changed", cli.TimeText(r.UpdatedAt))
	t.Add("  used", cli.TimeText(r.AccessedAt))
	if r.Unavailable != "" {
		t.Add("  not available", r.Unavailable)
		t.Print(w)
		return
	}
	t.Add("  events", r.Events)
	t.Add("  size", cli.BytesText(r.Bytes))
	t.Print(w)
	fmt.Fprintln(w)
	partitionTable(r.Partitions).Print(w)
	fmt.Fprintln(w)
	groupTable(r.Groups).Print(w)
	if r.Readers > 0 {
		fmt.Fprintln(w)
		readerRows(r.Partitions, "").Print(w)
	}
}

func partitionTable(ps []partitionView) *cli.Table {
	t := cli.NewTable("#PARTITION", "#FIRST", "#LAST", "#EVENTS", "#SIZE", "#IN/S", "#OUT/S", "#READERS", "LAST EVENT")
	for _, p := range ps {
		t.Add(p.ID, p.First, p.Last, p.Last-p.First+1, cli.BytesText(p.Bytes), p.In, p.Out, len(p.Readers), cli.TimeText(p.LastEvent))
	}
	return t
}

// groupTable lists consumer groups. How far one is behind is known of partitions that it
// reads.
func groupTable(gs []groupRuntime) *cli.Table {
	t := cli.NewTable("GROUP", "#READERS", "#PARTITIONS READ", "#EVENTS BEHIND", "#SIZE BEHIND", "#TIME BEHIND")
	for _, g := range gs {
		events, size, age := "-", "-", "-"
		if g.Readers > 0 {
			events, size, age = strconv.FormatInt(g.LagEvents, 10), cli.BytesText(g.LagBytes), secondsText(g.LagSeconds)
		}
		t.Add(g.Name, g.Readers, g.Partitions, events, size, age)
	}
	return t
}

// readerRows lists the readers of a group; empty is of all groups.
func readerRows(ps []partitionView, group string) *cli.Table {
	t := cli.NewTable("#PARTITION", "GROUP", "READER", "#EPOCH", "#NEXT", "#EVENTS BEHIND", "#SIZE BEHIND", "#TIME BEHIND", "SINCE")
	for _, p := range ps {
		for _, r := range p.Readers {
			if group != "" && entity.Key(r.Group) != entity.Key(group) {
				continue
			}
			epoch := "-"
			if r.Epoch != nil {
				epoch = strconv.FormatInt(*r.Epoch, 10)
			}
			t.Add(p.ID, r.Group, cli.Short(r.Name, cli.BodyColumn), epoch, r.Next, r.LagEvents, cli.BytesText(r.LagBytes), secondsText(r.LagSeconds), cli.TimeText(r.Since))
		}
	}
	return t
}

func secondsText(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}

func (k *hubCommand) deleteCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: k.use("delete"), Short: "Delete an event hub with its events", Args: cli.Exactly(k.args...),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			v, err := k.view(cmd.Context(), a, args)
			if err != nil {
				return err
			}
			if v.Runtime.Events > 0 && !force {
				return fmt.Errorf("%s contains %s\n  use --force to delete it with its events", k.name(args), cli.Count(v.Runtime.Events, "event"))
			}
			return k.change(cmd.Context(), a, http.MethodDelete, k.one(args), nil, "Deleted "+k.name(args))
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "delete it with its events")
	return cmd
}

func (k *hubCommand) view(ctx context.Context, a *cli.API, args []string) (hubView, error) {
	var v hubView
	return v, a.Do(ctx, http.MethodGet, k.one(args), nil, &v)
}
