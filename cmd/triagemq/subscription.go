// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/apply"
	"github.com/triagemq/triagemq/internal/entity"
)

func subscriptionCommand(s streams) *cobra.Command {
	cmd, t := clientCommand(s, &cobra.Command{
		Use: "subscription", Aliases: []string{"sub"}, Short: "Create, list, show, change, purge, pause and delete subscriptions",
		Example: `  triagemq subscription create jobs high --filter "Priority = 'High'"
  triagemq subscription list jobs
  triagemq subscription pause jobs low`,
	})
	var filter string
	k := &entityCommand{
		target: t, noun: "subscription", args: []string{"TOPIC", "NAME"},
		all:        func(args []string) string { return path("topics", args[0], "subscriptions") },
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
	k.more = func(_ context.Context, _ *api, v entityView) error {
		fmt.Fprintln(k.out)
		ruleTable(v.rules()).print(k.out)
		return nil
	}
	create := k.createCommand()
	create.Flags().StringVar(&filter, "filter", "", "SQL `condition` for the messages to take (default: everything); `triagemq rule` adds more")
	return group(cmd, create, k.listCommand(), k.showCommand(), k.updateCommand(), k.deleteCommand(),
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
func subscriptionTable(views []entityView) *table {
	t := newTable("NAME", "STATE", "#ACTIVE", "#LOCKED", "#SCHEDULED", "#DEFERRED", "#DEAD", "#RECEIVERS", "TAKES")
	for _, v := range views {
		r := v.Runtime
		var takes []string
		for _, rule := range v.rules() {
			takes = append(takes, apply.DescribeFilter(rule.Filter))
		}
		t.add(v.text("name"), v.state(), r.Active, r.Locked, r.Scheduled, r.Deferred, r.Dead, r.Receivers, short(strings.Join(takes, " or "), bodyColumn))
	}
	return t
}
