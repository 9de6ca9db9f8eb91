// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/jobs"
	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/queueserver"
)

const (
	measureEvery = time.Second
	noteEvery    = 30 * time.Second
	// lastNote is how long a stop waits for the measurements to be written.
	lastNote = 5 * time.Second
)

// measuring is the job that measures the queues with events, raises alerts, and stores the
// measurements at intervals, so that a restart loses little and a stop nothing.
type measuring struct{ b *Broker }

// Name implements jobs.Job.
func (m measuring) Name() string { return "measure" }

// Run implements jobs.Job.
func (m measuring) Run(ctx context.Context) (jobs.Next, error) {
	m.b.reportDamages(ctx)
	return jobs.After(measureEvery), m.b.measure(ctx, noteEvery)
}

// Finish implements jobs.Finisher.
func (m measuring) Finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastNote)
	defer cancel()
	m.b.reportDamages(ctx)
	_ = m.b.measure(ctx, 0) // a shard that has stopped stores nothing
}

// measure measures every queue that is due. Measurements older than every are stored.
func (b *Broker) measure(ctx context.Context, every time.Duration) error {
	var errs error
	for _, s := range b.shards {
		found, err := queueserver.Do(ctx, s, queueserver.Measure{NoteAfter: every})
		if err != nil { // it has stopped, or does not answer before ctx ends
			errs = cmp.Or(errs, err)
			continue
		}
		for _, x := range found {
			b.raise(b.ByID(s, x.ID), x.Changes)
		}
	}
	return errs
}

// Objectives has the measurements of a queue or subscription, and the state of its
// objectives.
type Objectives struct {
	Entity     string `json:"entity"`
	Discipline string `json:"discipline"`
	Revision   int64  `json:"policyRevision"`
	Locked     int64  `json:"locked"`
	Consumers  int    `json:"consumers"`
	// Saturated says whether levels are served by weight at present. It is missing if the
	// policy has no saturation.
	Saturated *bool `json:"saturated,omitempty"`
	objective.Report
}

// Objectives returns the measurements of a queue or subscription.
func (b *Broker) Objectives(ctx context.Context, addr string) (Objectives, error) {
	n, err := b.PolicyEntity(addr)
	if err != nil {
		return Objectives{}, err
	}
	all := b.reports(ctx, []*catalog.Entity{n})
	if len(all) == 0 {
		if err := ctx.Err(); err != nil {
			return Objectives{}, context.Cause(ctx)
		}
		return Objectives{}, fmt.Errorf("%w: %q", ErrNotFound, n.Path)
	}
	return all[0], nil
}

// AllObjectives returns the measurements of all queues and subscriptions, by path.
func (b *Broker) AllObjectives(ctx context.Context) []Objectives {
	var ns []*catalog.Entity
	for _, n := range b.Entities() {
		if n.Kind != KindTopic {
			ns = append(ns, n)
		}
	}
	byPath := make(map[string]Objectives, len(ns))
	for _, o := range b.reports(ctx, ns) {
		byPath[o.Entity] = o
	}
	all := make([]Objectives, 0, len(ns))
	for _, n := range ns {
		if o, ok := byPath[n.Path]; ok {
			all = append(all, o)
		}
	}
	return all
}

// reports returns the measurements of queues. A deleted one is left out, and so are those
// of a shard that has stopped or does not answer before ctx ends.
func (b *Broker) reports(ctx context.Context, ns []*catalog.Entity) []Objectives {
	byShard := make(map[*queueserver.Shard][]*catalog.Entity)
	for _, n := range ns {
		byShard[n.Shard] = append(byShard[n.Shard], n)
	}
	var all []Objectives
	for _, s := range b.shards {
		o, byID := queueserver.Report{}, make(map[queueserver.ID]*catalog.Entity)
		for _, n := range byShard[s] {
			o.IDs = append(o.IDs, n.ID)
			byID[n.ID] = n
		}
		if len(o.IDs) == 0 {
			continue
		}
		found, err := queueserver.Do(ctx, s, o)
		if err != nil {
			continue
		}
		for _, r := range found {
			n := byID[r.ID]
			b.raise(n, r.Changes)
			all = append(all, Objectives{
				Entity: n.Path, Discipline: r.Discipline, Revision: r.Revision, Locked: r.Locked, Consumers: r.Consumers,
				Saturated: r.Saturated, Report: r.Report,
			})
		}
	}
	return all
}
