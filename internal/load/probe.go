// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/objective"
)

// probeTimeout is how long an urgent message may take before the run is
// aborted.
const probeTimeout = 30 * time.Second

// errOverdue is an urgent message that does not come.
var errOverdue = errors.New("load: an urgent message does not come")

// probe sends urgent messages past the backlog, one at a time, while workers
// with one message each drain it as fast as they can. It measures the time from
// sending to receipt.
func (r *run) probe(ctx context.Context) error {
	stopWatch := r.watch("urgent")
	defer stopWatch()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	came := make(chan time.Duration, 1) // one is under way at a time
	before := r.in.Load()
	from, cpu := r.since(), ProcessorTime()
	stop, err := r.receivers(ctx, 1, func(d time.Duration) { came <- d })
	if err != nil {
		return err
	}
	latency, confirms, err := r.sendUrgent(ctx, came)
	r.report.Out = throughput(r.out.Load(), r.since()-from, ProcessorTime()-cpu)
	_, also := stop()
	if err := errors.Join(err, also); err != nil {
		return err
	}
	r.report.Urgent = quantiles(latency)
	r.report.Confirm = quantiles(confirms)
	r.report.Left = before - min(before, r.out.Load())
	return nil
}

// sendUrgent sends one message after the other and collects how long each took.
func (r *run) sendUrgent(ctx context.Context, came <-chan time.Duration) (latency, confirms *objective.Histogram, err error) {
	c, err := dial(ctx, r.cfg.Target)
	if err != nil {
		return nil, nil, err
	}
	defer c.close()
	s, err := r.newSender(c, newMessageTemplate(r.number, kindUrgent, r.cfg.Size, urgentLevel, urgentLevel), 1)
	if err != nil {
		return nil, nil, err
	}
	s.batch = 1
	latency = new(objective.Histogram)
	pause := time.NewTimer(0)
	<-pause.C
	for i := range r.cfg.Urgent {
		if err := s.work(&quota{total: 1}); err != nil {
			return nil, nil, err
		}
		pause.Reset(probeTimeout)
		select {
		case d := <-came:
			latency.Record(d)
		case <-pause.C:
			return nil, nil, errOverdue
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
		if i+1 < r.cfg.Urgent && r.cfg.Pause > 0 {
			pause.Reset(r.cfg.Pause)
			<-pause.C
		}
	}
	return latency, &s.confirms, nil
}
