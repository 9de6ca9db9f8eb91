// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"strconv"

	"github.com/triagemq/triagemq/client/admin"
)

// askGroup returns how to ask a broker about the instances: its administration tells who
// has which partition, and how far each is.
func askGroup(broker string) (func(context.Context) (groupState, error), error) {
	a, err := admin.New(broker, nil)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (groupState, error) {
		s, err := a.GroupState(ctx, hubName, "$Default")
		if err != nil {
			return groupState{}, err
		}
		return stateOf(s)
	}, nil
}

// stateOf takes what the page needs. Owners are shown by the names of the instances.
func stateOf(s admin.GroupState) (groupState, error) {
	var out groupState
	names := map[string]string{}
	for _, m := range s.Members {
		names[m.ID] = cmp.Or(m.Name, m.ID)
		out.Instances = append(out.Instances, opsInstance{ID: m.ID, Name: names[m.ID], Partitions: m.Partitions, Connected: m.Connected, Leaving: m.Leaving})
	}
	for _, p := range s.Partitions {
		n, err := strconv.Atoi(p.ID)
		if err != nil {
			return groupState{}, err
		}
		handled := int64(-1)
		for _, known := range []*int64{p.Handled, p.Checkpoint} {
			if known != nil {
				handled = max(handled, *known)
			}
		}
		age := -1.0
		if p.CheckpointAgeSeconds != nil {
			age = *p.CheckpointAgeSeconds
		}
		out.Partitions = append(out.Partitions, opsPartition{
			Partition: n, Owner: cmp.Or(names[p.Owner], p.Owner), State: p.State, Epoch: p.Epoch,
			LagEvents: p.LagEvents, LagSeconds: p.LagSeconds, CheckpointAge: age, Stuck: p.Stuck,
			last: handled + p.LagEvents, handled: handled,
		})
	}
	return out, nil
}
