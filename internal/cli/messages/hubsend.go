// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
)

// HubSendCommand publishes events.
func HubSendCommand(s cli.Streams) *cobra.Command {
	f := sendFlags{noun: "event"}
	partition := ""
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use:   "send HUB",
		Short: "Publish events",
		Long: `Publish events to an event hub, and return when they are on the broker's disk.

An event is what --body says, what is in a file, or what comes on standard input; with
--lines each line of it is one. Events with the same --key are in one partition, in
order. Without a key, each batch goes to the next partition.`,
		Example: `  triagemq hub send clicks --body '{"page": "/"}' --key visitor-7
  seq 1000 | triagemq hub send clicks --lines
  triagemq hub send clicks --body tick --count 100000 --partition 0`,
		Args: cli.Exactly("HUB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			to := args[0]
			if partition != "" {
				to += "/Partitions/" + partition
			}
			return f.run(cmd.Context(), to)
		},
	})
	f.Target = t
	f.contentFlags(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.message.PartitionKey, "key", "k", "", "partition `key`: events of one key stay in order")
	fs.StringVar(&partition, "partition", "", "`number` of the partition")
	cli.Exclusive(cmd, "key", "partition")
	return cmd
}
