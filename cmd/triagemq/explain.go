// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"
)

func explainCommand(s streams) *cobra.Command {
	var from source
	cmd, t := clientCommand(s, &cobra.Command{
		Use:   "explain QUEUE|TOPIC NUMBER",
		Short: "Explain a message's position, what blocks it, and when to expect delivery",
		Long: `Explain a message, named by its sequence number: its class and the reason for it, what
is ahead of it, what blocks it, and when to expect its delivery, with the calculation.
peek shows the sequence numbers.`,
		Example: `  triagemq explain orders 17
  triagemq explain events 4 --subscription audit`,
		Args: exactly("QUEUE|TOPIC", "NUMBER"),
	})
	cmd.Flags().StringVarP(&from.subscription, "subscription", "s", "", "`name` of the topic's subscription that is meant")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		number, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return usage(fmt.Errorf("%q is not a sequence number", args[1]))
		}
		a, err := t.api()
		if err != nil {
			return err
		}
		at := path("queues", args[0])
		if from.subscription != "" {
			at = path("topics", args[0], "subscriptions", from.subscription)
		}
		var raw json.RawMessage
		if err := a.do(cmd.Context(), http.MethodGet, fmt.Sprintf("%s/messages/%d/explain", at, number), nil, &raw); err != nil {
			return err
		}
		var told struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(raw, &told); err != nil {
			return err
		}
		if t.json {
			return answerJSON(t.out, raw)
		}
		_, err = fmt.Fprint(t.out, told.Text)
		return err
	}
	return cmd
}
