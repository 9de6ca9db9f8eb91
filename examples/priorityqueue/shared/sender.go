// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"context"
	"fmt"

	"github.com/triagemq/triagemq/client"
)

// SendBatch sends n messages of one priority to a topic, as one batch. The priority
// is a property of each message; which subscription takes it is not the sender's
// business.
func SendBatch(ctx context.Context, to *client.Sender, priority string, n int) error {
	var batch []*client.Message
	for i := range n {
		batch = append(batch, &client.Message{
			Body:       fmt.Appendf(nil, "%s priority message %d", priority, i+1),
			Properties: map[string]any{"Priority": priority},
		})
	}
	return to.SendBatch(ctx, batch)
}
