// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
)

// nounTopic is what deleting asks for, because it takes the subscriptions along.
const nounTopic = "topic"

func TopicCommand(s cli.Streams) *cobra.Command {
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use: nounTopic, Short: "Create, list, show, change, pause and delete topics",
		Example: `  triagemq topic create jobs
  triagemq topic show jobs`,
	})
	k := &entityCommand{
		Target: t, noun: nounTopic, args: []string{"NAME"},
		all:        func([]string) string { return "/topics" },
		properties: slices.Concat(sizeProperties, lifetimeProperties),
		pauses:     pause{Sending: true},
		list: func(views []entityView) *cli.Table {
			t := cli.NewTable("NAME", "STATE", "#SUBSCRIPTIONS", "#SCHEDULED")
			for _, v := range views {
				t.Add(v.text("name"), v.state(), v.Runtime.Subscriptions, v.Runtime.Scheduled)
			}
			return t
		},
	}
	k.more = func(ctx context.Context, a *cli.API, v entityView) error {
		subs, err := cli.ListAll[entityView](ctx, a, cli.Path("topics", v.text("name"), "subscriptions"), nil)
		if err != nil || len(subs) == 0 {
			return err
		}
		fmt.Fprintln(k.Out)
		subscriptionTable(subs).Print(k.Out)
		return nil
	}
	return cli.Group(cmd, k.createCommand(), k.listCommand(), k.showCommand(), k.updateCommand(), k.deleteCommand(),
		k.pauseCommand(), k.resumeCommand())
}
