// SPDX-License-Identifier: Apache-2.0

package streamserver

import "context"

// Poll is Next for a caller that steps the hub by hand: it asks if it has not, and
// returns what was answered since. It is not ready while there is no answer.
func (r *Reader) Poll(ctx context.Context, maxBytes int) (batches []Batch, ready bool, err error) {
	if err := r.post(maxBytes); err != nil {
		return nil, false, err
	}
	if !r.ready {
		select {
		case <-r.answered:
			r.asked = false
		default:
			return nil, false, nil
		}
	}
	r.ready = false
	if r.answer.err != nil {
		return nil, false, r.answer.err
	}
	if batches, err = r.load(ctx, maxBytes); len(batches) == 0 && err == nil {
		err = r.post(maxBytes)
	}
	return batches, len(batches) > 0, err
}
