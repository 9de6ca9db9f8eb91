// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
)

// drain is a drain that a peer has asked for: it gets what is durable when it asks, as far
// as its credit goes, and then the rest of its credit is given up.
type drain struct {
	asked bool  // the end of the partition is asked for
	known bool  // it has been told
	to    int64 // number of the event behind the last one, if known

	// Events that retention drops, or that are damaged, never come: so it is asked again.
	again time.Duration // after how long it was asked again last
	timer *time.Timer   // until then; nil for none
}

// check answers a drain that is done, or begins one.
func (d *drain) check(r *receiver) {
	if !r.link.Draining() {
		d.stop()
		*d = drain{asked: d.asked} // an answer that still comes is of an earlier one
		return
	}
	switch {
	case r.link.Granted() == 0, d.known && r.position >= d.to && len(r.backlog) == 0:
		r.link.DrainDone()
		d.known = false
	case d.asked || d.timer != nil:
	case !d.known:
		d.ask(r)
	default:
		d.again = min(max(2*d.again, soonestAgain), latestAgain)
		d.timer = time.AfterFunc(d.again, func() { r.c.Do(func() { d.lookAgain(r) }) })
	}
}

// lookAgain asks once more about a drain that is not done.
func (d *drain) lookAgain(r *receiver) {
	d.timer = nil
	if d.known && !d.asked && !r.gone {
		d.ask(r)
	}
}

// stop ends the wait until it is asked again.
func (d *drain) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func (d *drain) ask(r *receiver) {
	d.asked = true
	from := r.from
	r.c.Go(func() { r.askEnd(from) })
}

// askEnd asks the broker for the end of the partition, and whether the reader is there.
func (r *receiver) askEnd(from *broker.EventReader) {
	ctx, cancel := context.WithTimeout(r.ctx, openTimeout)
	defer cancel()
	p, err := entity.ParsePath(r.path)
	end := int64(0) // if there is no answer, the drain ends with what is here
	if err == nil {
		if info, err := r.c.broker.PartitionInfo(ctx, r.path, p.Partition); err == nil {
			end = int64(info.Last) + 1
		}
	}
	// What it has read has been posted before it waits for more.
	atEnd, err := from.AtEnd(ctx)
	r.c.Do(func() {
		r.drain.asked = false
		if r.gone {
			return
		}
		if d := &r.drain; r.link.Draining() {
			if !d.known {
				d.known, d.to = true, end
			}
			if atEnd || err != nil {
				d.to = 0
			}
		}
		r.drain.check(r)
	})
}
