// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/entity"
)

// source is where messages are read.
type source struct {
	subscription string
	dead         bool
	transfer     bool // those that could not be forwarded
}

func (s *source) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.subscription, "subscription", "s", "", "`name` of the topic's subscription to read")
	cmd.Flags().BoolVar(&s.dead, "dead-letter", false, "read the dead-letter queue")
}

// of returns the address to read for what the user named.
func (s source) of(name string) string {
	if s.subscription != "" {
		name = client.Subscription(name, s.subscription)
	}
	if s.transfer {
		name += "/" + entity.TransferDeadLetter.String()
	}
	if s.dead {
		name = client.DeadLetterQueue(name)
	}
	return name
}
