// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// operations looks at the instances once a second, for the operations page.
type operations struct {
	group func(context.Context) (groupState, error) // asks the broker

	mu      sync.Mutex
	status  opsStatus     // guarded by mu
	changed chan struct{} // closed by the next status; guarded by mu
}

// groupState is what the broker tells about the consumer group of the instances.
type groupState struct {
	Instances  []opsInstance
	Partitions []opsPartition
}

// opsStatus is what the page shows.
type opsStatus struct {
	At         int64          `json:"at"`   // milliseconds since 1970, like all times here
	Demo       bool           `json:"demo"` // the page can start and kill
	Error      string         `json:"error,omitempty"`
	Instances  []opsInstance  `json:"instances"`
	Partitions []opsPartition `json:"partitions"`
	In         float64        `json:"in"` // events a second, of all partitions
	Out        float64        `json:"out"`
	Lag        int64          `json:"lag"`
}

// opsInstance is a member of the group.
type opsInstance struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Partitions int    `json:"partitions"`
	Connected  bool   `json:"connected"`
	Leaving    bool   `json:"leaving"`
}

// opsPartition is a partition and its owner.
type opsPartition struct {
	Partition     int     `json:"partition"`
	Owner         string  `json:"owner"` // name of the instance; "" is nobody
	State         string  `json:"state"`
	Epoch         int64   `json:"epoch"`
	LagEvents     int64   `json:"lagEvents"`
	LagSeconds    float64 `json:"lagSeconds"`
	CheckpointAge float64 `json:"checkpointAge"` // seconds; negative if there is none
	Stuck         bool    `json:"stuck"`
	In            float64 `json:"in"` // events a second
	Out           float64 `json:"out"`
	Owners        []span  `json:"owners"` // over time, the oldest first

	last, handled int64 // sequence numbers of the last event, and of the last that was handled
}

// span is a time in which a partition had the same owner.
type span struct {
	Owner string `json:"owner"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
}

// history is how far back the page shows owners.
const history = 5 * time.Minute

func newOperations(group func(context.Context) (groupState, error)) *operations {
	return &operations{group: group, changed: make(chan struct{})}
}

// latest returns the status, and a channel that is closed when there is a newer one.
func (o *operations) latest() (opsStatus, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.status, o.changed
}

// run looks until ctx ends.
func (o *operations) run(ctx context.Context) {
	for ctx.Err() == nil {
		state, err := o.group(ctx)
		next := o.status // run alone writes it
		next.At = time.Now().UnixMilli()
		if err != nil {
			next.Error = err.Error() // the rest is as it was
		} else {
			next = follow(o.status, state, next.At)
		}
		o.mu.Lock()
		o.status = next
		close(o.changed)
		o.changed = make(chan struct{})
		o.mu.Unlock()
		_ = sleepUntil(ctx, time.Now().Add(time.Second)) // the loop looks at ctx
	}
}

// follow returns the status after an earlier one: with what has changed between them.
func follow(before opsStatus, state groupState, at int64) opsStatus {
	s := opsStatus{At: at, Instances: state.Instances, Partitions: state.Partitions}
	seconds := float64(at-before.At) / 1000
	for i := range s.Partitions {
		p := &s.Partitions[i]
		j := slices.IndexFunc(before.Partitions, func(b opsPartition) bool { return b.Partition == p.Partition })
		if j >= 0 && seconds > 0 {
			b := before.Partitions[j]
			p.In = smooth(b.In, float64(p.last-b.last)/seconds)
			p.Out = smooth(b.Out, max(0, float64(p.handled-b.handled)/seconds)) // a rewind is no speed
			p.Owners = b.Owners
		}
		p.Owners = extend(p.Owners, p.Owner, at)
		s.In, s.Out, s.Lag = s.In+p.In, s.Out+p.Out, s.Lag+p.LagEvents
	}
	return s
}

// smooth is a speed after the last one: positions are reported about once a second, not at
// the moment that we look.
func smooth(before, now float64) float64 { return before*0.8 + now*0.2 }

// extend adds who owns a partition now to the spans, of which it changes none.
func extend(spans []span, owner string, at int64) []span {
	first := slices.IndexFunc(spans, func(s span) bool { return s.To > at-history.Milliseconds() })
	if first < 0 {
		return []span{{owner, at, at}}
	}
	spans = slices.Clone(spans[first:])
	last := &spans[len(spans)-1]
	last.To = at
	if last.Owner != owner {
		spans = append(spans, span{owner, at, at})
	}
	return spans
}
