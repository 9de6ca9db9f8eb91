// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/spf13/cobra"
)

func queueCommand(s streams) *cobra.Command {
	cmd, t := clientCommand(s, &cobra.Command{
		Use: "queue", Short: "Create, list, show, change, purge, pause and delete queues",
		Example: `  triagemq queue create orders --lock-duration 30s --max-delivery-count 5
  triagemq queue list
  triagemq queue pause orders`,
	})
	k := &entityCommand{
		target: t, noun: "queue", args: []string{"NAME"},
		all:        func([]string) string { return "/queues" },
		properties: slices.Concat(readingProperties, sizeProperties, lifetimeProperties),
		pauses:     pause{Receiving: true},
		list:       readerTable,
	}
	return group(cmd, k.createCommand(), k.listCommand(), k.showCommand(), k.updateCommand(), k.deleteCommand(),
		k.purgeCommand(), k.pauseCommand(), k.resumeCommand())
}
