// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/apply"
	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/entity"
)

func SubscriptionCommand(s cli.Streams) *cobra.Command {
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use: "subscription", Aliases: []string{"sub"}, Short: "Create, list, show, change, purge, pause and delete subscriptions",
		Example: `  triagemq subscription create jobs high --filter "Priority = 'High'"
  triagemq subscription list jobs
  triagemq subscription pause jobs low`,
	})
	var filter string
	k := &entityCommand{
		Target: t, noun: "subscription", args: []string{"TOPIC", "NAME"},
		all:        func(args []string) string { return cli.Path("topics", args[0], "subscriptions") },
		properties: slices.Concat(readingProperties, lifetimeProperties),
		pauses:     pause{Receiving: true},
		list:       subscriptionTable,
		prepare: func(_ *cobra.Command, definition map[string]any) error {
			if filter != "" {
				definition["rules"] = []entity.Rule{{Name: entity.DefaultRule, Filter: entity.Filter{SQL: filter}}}
			}
			return nil
		},
	}
	k.more = func(_ context.Context, _ *cli.API, v entityView) error {
		fmt.Fprintln(k.Out)
		ruleTable(v.rules()).Print(k.Out)
		return nil
	}
	create := k.createCommand()
	create.Flags().StringVar(&filter, "filter", "", "SQL `condition` for the messages to take (default: everything); `triagemq rule` adds more")
	return cli.Group(cmd, create, k.listCommand(), k.showCommand(), k.updateCommand(), k.deleteCommand(),
		k.purgeCommand(), k.pauseCommand(), k.resumeCommand())
}

// rules are those in the definition of a subscription.
func (e entityView) rules() []entity.Rule {
	var rules []entity.Rule
	text, err := json.Marshal(e.Definition["rules"])
	if err == nil {
		_ = json.Unmarshal(text, &rules) // what cannot be read is not shown
	}
	return rules
}

// subscriptionTable is readerTable with what each takes.
func subscriptionTable(views []entityView) *cli.Table {
	t := cli.NewTable("NAME", "STATE", "#ACTIVE", "#LOCKED", "#SCHEDULED", "#DEFERRED", "#DEAD", "#RECEIVERS", "TAKES")
	for _, v := range views {
		r := v.Runtime
		var takes []string
		for _, rule := range v.rules() {
			takes = append(takes, apply.DescribeFilter(rule.Filter))
		}
		t.Add(v.text("name"), v.state(), r.Active, r.Locked, r.Scheduled, r.Deferred, r.Dead, r.Receivers, cli.Short(strings.Join(takes, " or "), cli.BodyColumn))
	}
	return t
}
