// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// keepSaving saves in the background what the pumps have done, for policies that do not
// save before the next events are handled. One request carries all partitions.
func (r *run) keepSaving() {
	if r.settings.policy.every == 0 {
		return
	}
	for pause(r.life, r.settings.policy.every) {
		r.saveAll()
	}
}

func (r *run) saveAll() {
	var busy []*pump
	var marks []mark
	for _, p := range r.all() {
		if m, ok := p.tryDue(); ok {
			busy, marks = append(busy, p), append(marks, m)
		}
	}
	if len(marks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(r.life, requestTimeout)
	defer cancel()
	errs, err := r.fleet.checkpoint(ctx, marks)
	for i, p := range busy {
		if err != nil {
			p.saved(marks[i].seqNo, err)
			continue
		}
		p.saved(marks[i].seqNo, errs[i])
		if errs[i] != nil && !errors.Is(errs[i], ErrLost) && r.life.Err() == nil {
			r.tell(fmt.Errorf("processor: checkpoint of partition %s: %w", p.grant.partition, errs[i]))
		}
	}
	if err != nil && r.life.Err() == nil {
		r.tell(fmt.Errorf("processor: checkpoint: %w", err))
	}
}

// keepReporting tells the fleet that this instance lives.
func (r *run) keepReporting() {
	for pause(r.life, reportEvery) {
		var rs []report
		pumps := r.all()
		for _, p := range pumps {
			rs = append(rs, p.report())
		}
		began := time.Since(r.began)
		ctx, cancel := context.WithTimeout(r.life, reportEvery)
		joins, err := r.fleet.report(ctx, rs)
		cancel()
		if err != nil {
			if r.life.Err() == nil {
				r.settings.log.Warn("report to the broker failed", "err", err)
			}
			continue
		}
		for i, p := range pumps {
			p.reported(rs[i])
		}
		r.joined.Store(joins) // before contact: both must be good
		r.contact.Store(int64(began))
		for _, p := range r.all() {
			p.wake() // it may have waited for this
		}
	}
}

// silent reports whether the broker may take this instance for dead, or may have done so: an
// instance that has joined again does not know what it has before it has heard that.
func (r *run) silent() bool {
	limit := r.fleet.silence()
	if limit == 0 {
		return false
	}
	return time.Since(r.began)-time.Duration(r.contact.Load()) > limit || r.heard.Load() < r.joined.Load()
}
