// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
)

func ExplainCommand(s cli.Streams) *cobra.Command {
	var from cli.Source
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use:   "explain QUEUE|TOPIC NUMBER",
		Short: "Explain a message's position, what blocks it, and when to expect delivery",
		Long: `Explain a message, named by its sequence number: its class and the reason for it, what
is ahead of it, what blocks it, and when to expect its delivery, with the calculation.
peek shows the sequence numbers.`,
		Example: `  triagemq explain orders 17
  triagemq explain events 4 --subscription audit`,
		Args: cli.Exactly("QUEUE|TOPIC", "NUMBER"),
	})
	cmd.Flags().StringVarP(&from.Subscription, "subscription", "s", "", "`name` of the topic's subscription that is meant")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		number, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return cli.Usage(fmt.Errorf("%q is not a sequence number", args[1]))
		}
		a, err := t.API()
		if err != nil {
			return err
		}
		at := cli.Path("queues", args[0])
		if from.Subscription != "" {
			at = cli.Path("topics", args[0], "subscriptions", from.Subscription)
		}
		var raw json.RawMessage
		if err := a.Do(cmd.Context(), http.MethodGet, fmt.Sprintf("%s/messages/%d/explain", at, number), nil, &raw); err != nil {
			return err
		}
		var told struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(raw, &told); err != nil {
			return err
		}
		if t.JSON {
			return cli.AnswerJSON(t.Out, raw)
		}
		_, err = fmt.Fprint(t.Out, told.Text)
		return err
	}
	return cmd
}
