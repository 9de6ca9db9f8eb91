// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/entity"
)

// tryMessage is a message to try rules with, as the API takes it.
type tryMessage struct {
	MessageID     string                  `json:"messageId,omitzero"`
	CorrelationID string                  `json:"correlationId,omitzero"`
	SessionID     string                  `json:"sessionId,omitzero"`
	Subject       string                  `json:"subject,omitzero"`
	To            string                  `json:"to,omitzero"`
	ReplyTo       string                  `json:"replyTo,omitzero"`
	ContentType   string                  `json:"contentType,omitzero"`
	Properties    map[string]entity.Value `json:"properties,omitempty"`
}

// trials is what the API answers.
type trials struct {
	Subscriptions []string `json:"subscriptions"`
	Rules         []struct {
		Subscription string `json:"subscription"`
		Rule         string `json:"rule"`
		Matched      bool   `json:"matched"`
		Why          string `json:"why"`
	} `json:"rules"`
}

func (r rules) test() *cobra.Command {
	var m tryMessage
	var properties []string
	cmd := &cobra.Command{
		Use: "test TOPIC", Short: "Say which subscriptions would take a message, and why", Args: cli.Exactly("TOPIC"),
		Long: "Say which subscriptions of a topic would take a message, by which rule and why. Nothing is sent.",
		Example: `  triagemq rule test jobs --property Priority=High
  triagemq rule test jobs --subject invoice --property amount=120`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if m.Properties, err = cli.ParseProperties(properties); err != nil {
				return err
			}
			a, err := r.API()
			if err != nil {
				return err
			}
			var answer trials
			if err := a.Do(cmd.Context(), http.MethodPost, cli.Path("topics", args[0])+"/try", m, &answer); err != nil {
				return err
			}
			if r.JSON {
				return cli.AnswerJSON(r.Out, answer)
			}
			r.tell(args[0], answer)
			return nil
		},
	}
	fs := cmd.Flags()
	fs.StringArrayVar(&properties, "property", nil, "`name=value`; may be repeated")
	fs.StringVar(&m.MessageID, "id", "", "message `id`")
	fs.StringVar(&m.Subject, "subject", "", "what it is about, sys.Label in rules")
	fs.StringVar(&m.CorrelationID, "correlation-id", "", "`id` of what it answers or belongs to")
	fs.StringVar(&m.SessionID, "session", "", "`id` of the session")
	fs.StringVar(&m.To, "to", "", "`address` it goes to")
	fs.StringVar(&m.ReplyTo, "reply-to", "", "`address` for an answer")
	fs.StringVar(&m.ContentType, "content-type", "", "media `type` of the body")
	return cmd
}

func (r rules) tell(topic string, answer trials) {
	if len(answer.Rules) > 0 {
		t := cli.NewTable("SUBSCRIPTION", "TAKES IT", "RULE", "WHY")
		for _, trial := range answer.Rules {
			takes := "no"
			if trial.Matched {
				takes = "yes"
			}
			t.Add(trial.Subscription, takes, trial.Rule, trial.Why)
		}
		t.Print(r.Out)
		fmt.Fprintln(r.Out)
	}
	switch n := len(answer.Subscriptions); n {
	case 0:
		fmt.Fprintf(r.Out, "No subscription of %s would take it.\n", topic)
	default:
		fmt.Fprintf(r.Out, "%s of %s would take it: %s.\n", cli.Count(n, "subscription"), topic, strings.Join(answer.Subscriptions, ", "))
	}
}
