// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/cli/entities"
	"github.com/triagemq/triagemq/internal/cli/host"
	"github.com/triagemq/triagemq/internal/cli/messages"
	"github.com/triagemq/triagemq/internal/cli/pools"
	"github.com/triagemq/triagemq/internal/cli/work"
)

// rootCommand is the command that the others hang from.
func rootCommand(s cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "triagemq",
		Short: "The message broker that serves what matters first",
		Long: `TriageMQ is a message broker: queues that sort by priority, durable by default,
spoken over AMQP 1.0, so that Azure Service Bus SDKs work unmodified.`,
		SilenceErrors: true, // run prints them once
		SilenceUsage:  true,
		Version:       host.Version(),
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cli.Usage(err) })
	return cli.Group(root, commands(s)...)
}

// commands is the table of commands, in the order of their help.
func commands(s cli.Streams) []*cobra.Command {
	return []*cobra.Command{
		host.ServeCommand(s),
		messages.SendCommand(s), messages.ReceiveCommand(s), messages.PeekCommand(s),
		entities.QueueCommand(s), entities.TopicCommand(s), entities.SubscriptionCommand(s), entities.RuleCommand(s), messages.DeadLetterCommand(s),
		entities.HubCommand(s, messages.HubSendCommand(s), messages.HubTailCommand(s)), entities.GroupCommand(s),
		entities.PolicyCommand(s), entities.ObjectivesCommand(s), entities.StatsCommand(s), messages.ExplainCommand(s),
		work.Command(s), pools.PoolCommand(s),
		entities.ApplyCommand(s), entities.ExportCommand(s), host.ConfigCommand(s), host.KeyCommand(s),
		host.BenchCommand(s),
		host.JournalCommand(s),
		host.VersionCommand(s),
	}
}
