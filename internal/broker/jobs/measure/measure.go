// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/jobs"
	"github.com/triagemq/triagemq/internal/broker/jobs/alerts"
	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/queueserver"
)

const (
	// Every is how often queues are measured.
	Every = time.Second
	// storeEvery is how often the measurements of a queue are stored.
	storeEvery = 30 * time.Second
	// lastStore is how long a stop waits for the measurements to be written.
	lastStore = 5 * time.Second
)

// Catalog is what measuring needs of the catalog of entities.
type Catalog interface {
	Entities() []*catalog.Entity
	ByID(s *queueserver.Shard, id queueserver.ID) *catalog.Entity
	PolicyEntity(addr string) (*catalog.Entity, error)
}

// Measuring is the job that measures the queues with events, raises alerts, and stores the
// measurements at intervals, so that a restart loses little and a stop nothing.
type Measuring struct {
	catalog Catalog
	shards  []*queueserver.Shard
	alerts  *alerts.Alerts
}

// New returns the job, which raises alerts in as.
func New(c Catalog, shards []*queueserver.Shard, as *alerts.Alerts) *Measuring {
	return &Measuring{c, shards, as}
}

// Name implements jobs.Job.
func (m *Measuring) Name() string { return "measure" }

// Run implements jobs.Job.
func (m *Measuring) Run(ctx context.Context) (jobs.Next, error) {
	m.alerts.ReportDamages(ctx)
	return jobs.After(Every), m.measure(ctx, storeEvery)
}

// Finish implements jobs.Finisher.
func (m *Measuring) Finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastStore)
	defer cancel()
	m.alerts.ReportDamages(ctx)
	_ = m.measure(ctx, 0) // a shard that has stopped stores nothing
}

// measure measures every queue that is due. Measurements older than every are stored.
func (m *Measuring) measure(ctx context.Context, every time.Duration) error {
	var errs error
	for _, s := range m.shards {
		found, err := queueserver.Do(ctx, s, queueserver.Measure{NoteAfter: every})
		if err != nil { // it has stopped, or does not answer before ctx ends
			errs = cmp.Or(errs, err)
			continue
		}
		for _, x := range found {
			m.alerts.Raise(m.catalog.ByID(s, x.ID), x.Changes)
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
func (m *Measuring) Objectives(ctx context.Context, addr string) (Objectives, error) {
	n, err := m.catalog.PolicyEntity(addr)
	if err != nil {
		return Objectives{}, err
	}
	all := m.reports(ctx, []*catalog.Entity{n})
	if len(all) == 0 {
		if err := ctx.Err(); err != nil {
			return Objectives{}, context.Cause(ctx)
		}
		return Objectives{}, fmt.Errorf("%w: %q", catalog.ErrNotFound, n.Path)
	}
	return all[0], nil
}

// All yields the measurements of all queues and subscriptions, by path. They are made in
// parts, as far as the caller goes: of a hundred thousand queues they take gigabytes.
func (m *Measuring) All(ctx context.Context) iter.Seq[Objectives] {
	return func(yield func(Objectives) bool) {
		for part := range slices.Chunk(m.catalog.Entities(), 500) {
			for _, o := range m.some(ctx, part) {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// some returns the measurements of those entities that have any, in order.
func (m *Measuring) some(ctx context.Context, entities []*catalog.Entity) []Objectives {
	var ns []*catalog.Entity
	for _, n := range entities {
		if n.Kind == catalog.KindQueue || n.Kind == catalog.KindSubscription {
			ns = append(ns, n)
		}
	}
	byPath := make(map[string]Objectives, len(ns))
	for _, o := range m.reports(ctx, ns) {
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
func (m *Measuring) reports(ctx context.Context, ns []*catalog.Entity) []Objectives {
	byShard := make(map[*queueserver.Shard][]*catalog.Entity)
	for _, n := range ns {
		byShard[n.Shard] = append(byShard[n.Shard], n)
	}
	var all []Objectives
	for _, s := range m.shards {
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
			m.alerts.Raise(n, r.Changes)
			all = append(all, Objectives{
				Entity: n.Path, Discipline: r.Discipline, Revision: r.Revision, Locked: r.Locked, Consumers: r.Consumers,
				Saturated: r.Saturated, Report: r.Report,
			})
		}
	}
	return all
}
