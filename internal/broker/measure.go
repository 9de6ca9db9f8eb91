// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/shard"
)

const (
	lookEvery = time.Second
	noteEvery = 30 * time.Second
	// lastNote is how long a stop waits for the measurements to be written.
	lastNote = 5 * time.Second
	// lookAtOnce is how many queues a shard looks at between two operations.
	lookAtOnce = 64
)

// measure looks at the queues in which something happens, raises alerts, and
// writes down now and then what was measured, so that a restart forgets little
// and a stop nothing.
func (b *Broker) measure(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.tellDamages(ctx)
			b.look(ctx, noteEvery)
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastNote)
			defer cancel()
			b.tellDamages(ctx)
			b.look(ctx, 0)
			return
		}
	}
}

// look looks at every queue that needs it. Notes older than that are written anew.
func (b *Broker) look(ctx context.Context, every time.Duration) {
	var busy []*node
	b.mu.RLock()
	for _, n := range b.nodes {
		if w := n.watch; w != nil && (w.changed.Load() || w.restless.Load()) {
			busy = append(busy, n)
		}
	}
	b.mu.RUnlock()
	visit(ctx, b, busy, func(tx *shard.Tx, n *node, q *queue.Queue) struct{} {
		b.raise(n, n.watch.look(tx.Now(), q))
		n.watch.note(tx, n.id, every)
		return struct{}{}
	})
}

// visit runs fn for each of the queues on its shard, a few at a time, and returns
// what it returned. A queue that is gone is left out, and so is a shard that has
// stopped or does not answer before ctx ends.
func visit[T any](ctx context.Context, b *Broker, ns []*node, fn func(*shard.Tx, *node, *queue.Queue) T) []T {
	var all []T
	byShard := make(map[*shard.Shard][]*node)
	for _, n := range ns {
		byShard[n.shard] = append(byShard[n.shard], n)
	}
	for _, s := range b.shards {
		for ns := byShard[s]; len(ns) > 0; {
			few := ns[:min(len(ns), lookAtOnce)]
			ns = ns[len(few):]
			var found []T
			err := s.CallInSteps(ctx, func(tx *shard.Tx) (bool, error) {
				for visits := tx.Visits(); len(few) > 0; few = few[1:] {
					q, err := tx.Inspect(few[0].id, shard.Main)
					if err != nil {
						continue
					}
					if !q.SeekOldest(&visits) {
						return false, nil
					}
					found = append(found, fn(tx, few[0], q))
				}
				return true, nil
			})
			if err == nil { // else the call may still be under way
				all = append(all, found...)
			}
		}
	}
	return all
}

// look brings everything up to now and returns the states that have changed.
func (w *watch) look(now time.Time, q *queue.Queue) []objective.Change {
	w.changed.Store(w.unnoted) // what is not written down yet is looked at until it is
	w.observe(q)
	changes := append(w.meter.Tick(now), w.crowding(now, q)...)
	restless := false
	for _, c := range w.policy.Classes {
		restless = restless || c.Objective.Wait > 0 || c.ExpectedRate != (policy.Rate{})
	}
	restless = (restless || w.policy.Saturation.Oldest > 0) && q.Counts().Ready > 0
	for _, state := range w.meter.States {
		restless = restless || state != objective.Met
	}
	w.restless.Store(restless)
	return changes
}

// crowding tells when a queue becomes saturated, and when that is over.
func (w *watch) crowding(now time.Time, q *queue.Queue) []objective.Change {
	saturated := q.Saturated(now)
	if saturated == w.saturated {
		return nil
	}
	w.saturated = saturated
	c := objective.Change{At: now, Subject: objective.OfSaturation, From: objective.Met, To: objective.AtRisk}
	c.Why = fmt.Sprintf("%d messages wait; classes share the deliveries by weight", q.Counts().Ready)
	if !saturated {
		c.From, c.To = c.To, c.From
		c.Why = fmt.Sprintf("%d messages wait; the highest level goes first again", q.Counts().Ready)
	}
	return []objective.Change{c}
}

// observe tells the meter what waits.
func (w *watch) observe(q *queue.Queue) {
	for c := range len(w.policy.Classes) + 1 {
		if n, _ := q.ReadyOf(queue.Class(c)); n == 0 {
			w.meter.Observe(uint8(c), objective.Backlog{})
		}
	}
	for c, st := range q.Classes() {
		w.meter.Observe(uint8(c), objective.Backlog{Waiting: st.Ready, Oldest: st.Oldest})
	}
}

// note writes down what was measured if that is due.
func (w *watch) note(tx *shard.Tx, id shard.ID, every time.Duration) {
	if !w.unnoted || tx.Now().Sub(w.noted) < every {
		return
	}
	w.unnoted, w.noted = false, tx.Now()
	w.changed.Store(false)
	// An entity that is gone needs no note.
	_ = tx.Note(id, w.meter.Snapshot())
}

// Objectives is what was measured of a queue or subscription, and how what is
// promised of it stands.
type Objectives struct {
	Entity     string `json:"entity"`
	Discipline string `json:"discipline"`
	Revision   int64  `json:"policyRevision"`
	Locked     int64  `json:"locked"`
	Consumers  int    `json:"consumers"`
	// Saturated says whether classes share the deliveries for the time being. It is
	// missing if the policy does not know of it.
	Saturated *bool `json:"saturated,omitempty"`
	objective.Report
}

// Objectives returns what was measured of a queue or subscription.
func (b *Broker) Objectives(ctx context.Context, addr string) (Objectives, error) {
	n, err := b.ranked(addr)
	if err != nil {
		return Objectives{}, err
	}
	all := b.reports(ctx, []*node{n})
	if len(all) == 0 {
		if err := ctx.Err(); err != nil {
			return Objectives{}, context.Cause(ctx)
		}
		return Objectives{}, fmt.Errorf("%w: %q", ErrNotFound, n.path)
	}
	return all[0], nil
}

// AllObjectives returns what was measured of all queues and subscriptions, by
// path.
func (b *Broker) AllObjectives(ctx context.Context) []Objectives {
	var ns []*node
	for _, n := range b.sorted() {
		if n.watch != nil {
			ns = append(ns, n)
		}
	}
	byPath := make(map[string]Objectives, len(ns))
	for _, o := range b.reports(ctx, ns) {
		byPath[o.Entity] = o
	}
	all := make([]Objectives, 0, len(ns))
	for _, n := range ns {
		if o, ok := byPath[n.path]; ok {
			all = append(all, o)
		}
	}
	return all
}

func (b *Broker) reports(ctx context.Context, ns []*node) []Objectives {
	return visit(ctx, b, ns, func(tx *shard.Tx, n *node, q *queue.Queue) Objectives {
		w := n.watch
		b.raise(n, w.look(tx.Now(), q))
		o := Objectives{
			Entity: n.path, Discipline: w.policy.Discipline.String(), Revision: w.policy.Revision,
			Locked: q.Counts().Locked, Consumers: tx.Receivers(n.id, shard.Main),
			Report: w.meter.Report(tx.Now()),
		}
		if q.Config().Order.Saturation != (queue.Saturation{}) {
			saturated := w.saturated
			o.Saturated = &saturated
		}
		return o
	})
}
