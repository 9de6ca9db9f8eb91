// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// nounTopic is what deleting asks for, because it takes the subscriptions along.
const nounTopic = "topic"

func topicCommand(s streams) *cobra.Command {
	cmd, t := clientCommand(s, &cobra.Command{
		Use: nounTopic, Short: "Create, list, show, change, pause and delete topics",
		Example: `  triagemq topic create jobs
  triagemq topic show jobs`,
	})
	k := &entityCommand{
		target: t, noun: nounTopic, args: []string{"NAME"},
		all:        func([]string) string { return "/topics" },
		properties: slices.Concat(sizeProperties, lifetimeProperties),
		pauses:     pause{Sending: true},
		list: func(views []entityView) *table {
			t := newTable("NAME", "STATE", "#SUBSCRIPTIONS", "#SCHEDULED")
			for _, v := range views {
				t.add(v.text("name"), v.state(), v.Runtime.Subscriptions, v.Runtime.Scheduled)
			}
			return t
		},
	}
	k.more = func(ctx context.Context, a *api, v entityView) error {
		subs, err := listAll[entityView](ctx, a, path("topics", v.text("name"), "subscriptions"), nil)
		if err != nil || len(subs) == 0 {
			return err
		}
		fmt.Fprintln(k.out)
		subscriptionTable(subs).print(k.out)
		return nil
	}
	return group(cmd, k.createCommand(), k.listCommand(), k.showCommand(), k.updateCommand(), k.deleteCommand(),
		k.pauseCommand(), k.resumeCommand())
}
