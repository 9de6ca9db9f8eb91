// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
)

func QueueCommand(s cli.Streams) *cobra.Command {
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use: "queue", Short: "Create, list, show, change, purge, pause and delete queues",
		Example: `  triagemq queue create orders --lock-duration 30s --max-delivery-count 5
  triagemq queue list
  triagemq queue pause orders`,
	})
	k := &entityCommand{
		Target: t, noun: "queue", args: []string{"NAME"},
		all:        func([]string) string { return "/queues" },
		properties: slices.Concat(readingProperties, sizeProperties, lifetimeProperties),
		pauses:     pause{Receiving: true},
		list:       readerTable,
	}
	return cli.Group(cmd, k.createCommand(), k.listCommand(), k.showCommand(), k.updateCommand(), k.deleteCommand(),
		k.purgeCommand(), k.pauseCommand(), k.resumeCommand())
}
