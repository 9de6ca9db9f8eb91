// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
)

// GroupCommand is the command about consumer groups of event hubs.
func GroupCommand(s cli.Streams) *cobra.Command {
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use: "group", Short: "Create, list, show, rewind and delete consumer groups of event hubs",
		Example: `  triagemq group create clicks dashboard
  triagemq group list clicks
  triagemq group show clicks dashboard
  triagemq group lag clicks dashboard
  triagemq group rewind clicks dashboard --all --to -1h`,
	})
	k := &groupCommand{entityCommand{
		Target: t, noun: "group", args: []string{"HUB", "NAME"},
		all:        func(args []string) string { return cli.Path("hubs", args[0], "groups") },
		properties: []property{{"userMetadata", aText, "`text` for your own use"}},
	}}
	return cli.Group(cmd, k.createCommand(), k.listCommand(), k.showCommand(), k.lagCommand(), k.rewindCommand(), k.releaseCommand(),
		k.pauseCommand(), k.resumeCommand(), k.deleteCommand())
}

type groupCommand struct{ entityCommand }

// groupView is a consumer group as the API shows it.
type groupView struct {
	Definition struct {
		Name         string    `json:"name"`
		UserMetadata string    `json:"userMetadata"`
		CreatedAt    time.Time `json:"createdAt"`
		UpdatedAt    time.Time `json:"updatedAt"`
	} `json:"definition"`
	Runtime groupRuntime `json:"runtime"`
	State   *groupState  `json:"state"`
}

func (k *groupCommand) listCommand() *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use: "list HUB", Short: "List the consumer groups of a hub, and how far they are behind", Args: cli.Exactly("HUB"),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			items, err := cli.ListAll[json.RawMessage](cmd.Context(), a, k.all(args), url.Values{"prefix": {prefix}})
			if err != nil {
				return err
			}
			if k.JSON {
				return cli.AnswerJSON(k.Out, items)
			}
			var gs []groupRuntime
			for _, item := range items {
				var v groupView
				if err := json.Unmarshal(item, &v); err != nil {
					return err
				}
				gs = append(gs, v.Runtime)
			}
			groupTable(gs).Print(k.Out)
			return nil
		}),
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only names that `begin` with this")
	return cmd
}

func (k *groupCommand) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: k.use("show"), Short: "Show a consumer group with its members, partitions and readers", Args: cli.Exactly(k.args...),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			var raw json.RawMessage
			if err := a.Do(cmd.Context(), http.MethodGet, k.one(args), nil, &raw); err != nil {
				return err
			}
			if k.JSON {
				return cli.AnswerJSON(k.Out, raw)
			}
			var v groupView
			var hub hubView
			if err := json.Unmarshal(raw, &v); err != nil {
				return err
			}
			if err := a.Do(cmd.Context(), http.MethodGet, cli.Path("hubs", args[0]), nil, &hub); err != nil {
				return err
			}
			fmt.Fprintln(k.Out, k.name(args))
			t := cli.NewTable("  created", cli.TimeText(v.Definition.CreatedAt))
			t.Add("  changed", cli.TimeText(v.Definition.UpdatedAt))
			if v.Definition.UserMetadata != "" {
				t.Add("  userMetadata", v.Definition.UserMetadata)
			}
			if v.State.used() {
				t.Add("  members", len(v.State.Members))
				t.Add("  owner changes", v.State.OwnerChanges)
			}
			t.Add("  readers", v.Runtime.Readers)
			if v.Runtime.Readers > 0 {
				t.Add("  partitions read", v.Runtime.Partitions)
				t.Add("  behind", fmt.Sprintf("%s, %s, %s", cli.Count(v.Runtime.LagEvents, "event"), cli.BytesText(v.Runtime.LagBytes), secondsText(v.Runtime.LagSeconds)))
			}
			t.Print(k.Out)
			if v.State.used() {
				v.State.print(k.Out)
			}
			if v.Runtime.Readers > 0 {
				fmt.Fprintln(k.Out)
				readerRows(hub.Runtime.Partitions, v.Definition.Name).Print(k.Out)
			}
			return nil
		}),
	}
}

func (k *groupCommand) deleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: k.use("delete"), Short: "Delete a consumer group; the events stay", Args: cli.Exactly(k.args...),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			return k.change(cmd.Context(), a, http.MethodDelete, k.one(args), nil, "Deleted "+k.name(args))
		}),
	}
}
