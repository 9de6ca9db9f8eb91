// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/entity"
)

// Source is where messages are read.
type Source struct {
	Subscription string
	Dead         bool
	Transfer     bool // those that could not be forwarded
}

func (s *Source) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.Subscription, "subscription", "s", "", "`name` of the topic's subscription to read")
	cmd.Flags().BoolVar(&s.Dead, "dead-letter", false, "read the dead-letter queue")
}

// Of returns the address to read for what the user named.
func (s Source) Of(name string) string {
	if s.Subscription != "" {
		name = client.Subscription(name, s.Subscription)
	}
	if s.Transfer {
		name += "/" + entity.TransferDeadLetter.String()
	}
	if s.Dead {
		name = client.DeadLetterQueue(name)
	}
	return name
}
