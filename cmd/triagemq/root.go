// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

// rootCommand is the command that the others hang from.
func rootCommand(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "triagemq",
		Short: "The message broker that serves what matters first",
		Long: `TriageMQ is a message broker: queues that sort by priority, durable by default,
spoken over AMQP 1.0, so that Azure Service Bus SDKs work unmodified.`,
		SilenceErrors: true, // run prints them once
		SilenceUsage:  true,
		Version:       version(),
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	return group(root, commands(s)...)
}

// commands is the table of commands, in the order of their help.
func commands(s streams) []*cobra.Command {
	return []*cobra.Command{
		serveCommand(s),
		sendCommand(s), receiveCommand(s), peekCommand(s),
		queueCommand(s), topicCommand(s), subscriptionCommand(s), ruleCommand(s), deadLetterCommand(s),
		policyCommand(s), objectivesCommand(s), statsCommand(s), explainCommand(s),
		applyCommand(s), exportCommand(s), configCommand(s), keyCommand(s),
		benchCommand(s),
		journalCommand(s),
		versionCommand(s),
	}
}
