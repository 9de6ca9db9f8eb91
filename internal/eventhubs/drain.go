// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"context"

	"github.com/triagemq/triagemq/internal/entity"
)

// drain is a drain that a peer has asked for: it gets what is durable when it asks, as far
// as its credit goes, and then the rest of its credit is given up.
type drain struct {
	asked bool  // the end of the partition is asked for
	known bool  // it has been told
	to    int64 // number of the event behind the last one, if known
}

// check answers a drain that is done, or begins one.
func (d *drain) check(r *receiver) {
	if !r.link.Draining() {
		*d = drain{asked: d.asked} // an answer that still comes is of an earlier one
		return
	}
	switch {
	case r.link.Granted() == 0, d.known && r.position >= d.to && len(r.backlog) == 0:
		r.link.DrainDone()
		d.known = false
	case !d.known && !d.asked:
		d.asked = true
		r.c.Go(func() { r.askEnd() })
	}
}

// askEnd asks the broker for the end of the partition.
func (r *receiver) askEnd() {
	ctx, cancel := context.WithTimeout(r.ctx, openTimeout)
	defer cancel()
	p, err := entity.ParsePath(r.path)
	end := int64(0) // if there is no answer, the drain ends with what is here
	if err == nil {
		if info, err := r.c.broker.PartitionInfo(ctx, r.path, p.Partition); err == nil {
			end = int64(info.Last) + 1
		}
	}
	r.c.Do(func() {
		r.drain.asked = false
		if r.gone {
			return
		}
		if r.link.Draining() {
			r.drain.known, r.drain.to = true, end
		}
		r.drain.check(r)
	})
}
