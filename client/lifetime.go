// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"time"
)

// newLifetime returns the context of a client, which lives until Close: no context of
// a caller is as long.
func newLifetime() (context.Context, context.CancelCauseFunc) {
	return context.WithCancelCause(context.Background()) //nolint:forbidigo // as above
}

// closeLimit bounds Close.
const closeLimit = 5 * time.Second

// closing runs one of the Shutdowns for as long as Close may take.
func (c *Client) closing(shutdown func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.life), closeLimit)
	defer cancel()
	return shutdown(ctx)
}
