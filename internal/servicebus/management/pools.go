// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

// poolSources reads the sources of a pool, in the connection's context: rights are known
// there. The first is the entity of the node. Of the others, those that the sender may
// not listen to are left out: it must learn nothing of them, and show none.
func (k *call) poolSources() error {
	if k.Entity() == "" {
		return endpoint.Errorf(endpoint.CondNotAllowed, "A pool announces itself at a queue or subscription.")
	}
	var err error
	if k.sources, err = k.listened(names.PoolSources, []string{k.Entity()}); err != nil {
		return err
	}
	k.beside, err = k.listened(names.PoolBeside, nil)
	return err
}

// listened adds those of a list of addresses to some that the sender may listen to.
func (k *call) listened(name string, to []string) ([]string, error) {
	v, _ := k.Body().Lookup(name)
	if v.IsNull() {
		return to, nil
	}
	if v.Kind() != codec.KindArray && v.Kind() != codec.KindList {
		return nil, azure.BadArgument(name, "a list of addresses")
	}
	n := 0
	for e := range v.List() {
		if n++; n > limits.PoolSources {
			return nil, azure.BadArgument(name, fmt.Sprintf("a list of at most %d addresses", limits.PoolSources))
		}
		addr, ok := e.Str()
		if !ok || len(addr) > 4*limits.PoolText {
			return nil, azure.BadArgument(name, "a list of addresses")
		}
		if _, err := entity.ParsePath(addr); err != nil {
			return nil, azure.BadArgument(name, "a list of addresses")
		}
		path := strings.Clone(wire.PathOf(addr))
		if slices.Contains(to, path) || k.Conn().Require(access.Listen, path) != nil {
			continue
		}
		to = append(to, path)
	}
	return to, nil
}

// announcePool takes the report of a process of a worker pool, and answers with orders.
func announcePool(ctx context.Context, k *call) (codec.Value, error) {
	r, err := k.poolReport()
	if err != nil {
		return codec.Value{}, err
	}
	a, err := k.broker.AnnouncePool(ctx, r)
	if err != nil {
		return codec.Value{}, err
	}
	return wire.Result(
		names.PoolPaused, codec.Bool(a.Orders.Paused),
		names.PoolSlots, codec.Int(clamped(a.Orders.Slots)),
		names.PoolRevision, codec.Long(a.Orders.Revision),
		names.PoolSeal, codec.String(a.Orders.Seal),
		names.PoolKnown, codec.Bool(a.Known),
		names.PoolDemand, codec.Int(clamped(a.Demand)),
		names.PoolWaiting, codec.Long(a.Waiting),
		names.PoolOldest, codec.Long(a.Oldest.Milliseconds()),
		names.PoolSpare, codec.Bool(a.Spare),
		names.PoolInstances, codec.Int(clamped(a.Instances)),
	), nil
}

func clamped(n int) int32 { return int32(min(n, math.MaxInt32)) }

// poolReport reads the report. Numbers that are missing are zero: later versions may tell
// less.
func (k *call) poolReport() (broker.PoolReport, error) {
	r := broker.PoolReport{Sources: k.sources, Beside: k.beside}
	var err error
	if r.Name, err = k.MustText(names.PoolName); err != nil {
		return r, err
	}
	if r.Instance, err = k.MustText(names.PoolInstance); err != nil {
		return r, err
	}
	for _, t := range []struct {
		name string
		to   *string
	}{{names.PoolHost, &r.Host}, {names.PoolIdle, &r.Idle}, {names.PoolSeal, &r.Orders.Seal}} {
		if text := k.Text(t.name); text != nil {
			*t.to = *text
		}
	}
	for _, f := range []struct {
		name string
		to   *bool
	}{
		{names.PoolPaused, &r.Paused}, {names.PoolBackground, &r.Background},
		{names.PoolLeaving, &r.Leaving}, {names.PoolOrderedPause, &r.Orders.Paused},
	} {
		v, _ := k.Body().Lookup(f.name)
		*f.to, _ = v.Bool()
	}
	for _, n := range []struct {
		name string
		to   *int
	}{
		{names.PoolProcess, &r.Process}, {names.PoolSlots, &r.Slots}, {names.PoolBusy, &r.Busy},
		{names.PoolSuspended, &r.Suspended}, {names.PoolRetrying, &r.Retrying}, {names.PoolOrderedSlots, &r.Orders.Slots},
	} {
		got, err := k.whole(n.name, math.MaxInt32)
		if err != nil {
			return r, err
		}
		*n.to = int(got)
	}
	if r.Orders.Revision, err = k.whole(names.PoolRevision, math.MaxInt64); err != nil {
		return r, err
	}
	for _, n := range []struct {
		name string
		to   *uint64
	}{
		{names.PoolCompleted, &r.Counts.Completed}, {names.PoolFailed, &r.Counts.Failed},
		{names.PoolDeadLettered, &r.Counts.DeadLettered}, {names.PoolPreempted, &r.Counts.Preempted},
	} {
		got, err := k.whole(n.name, math.MaxInt64)
		if err != nil {
			return r, err
		}
		*n.to = uint64(got)
	}
	return r, nil
}

// whole returns a number between zero and most; zero if it is absent.
func (k *call) whole(name string, most int64) (int64, error) {
	v, _ := k.Body().Lookup(name)
	if v.IsNull() {
		return 0, nil
	}
	n, ok := wire.Integer(v)
	if !ok || n < 0 {
		return 0, azure.BadArgument(name, "a number that is not negative")
	}
	return min(n, most), nil
}
