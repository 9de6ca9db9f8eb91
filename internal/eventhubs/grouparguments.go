// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"fmt"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
)

// longestCoolDown bounds the time in which a member does not get a partition back.
const longestCoolDown = 24 * time.Hour

// Whether a list of partitions may be empty.
type emptiness bool

const (
	notEmpty   emptiness = false
	maybeEmpty emptiness = true
)

// number returns a number of at least lowest.
func (g *groupCall) number(name string, lowest int64) (int64, error) {
	v, _ := g.Body().Lookup(name)
	n, ok := wire.Integer(v)
	if !ok || n < lowest {
		return 0, azure.BadArgument(name, fmt.Sprintf("a number that is not less than %d", lowest))
	}
	return n, nil
}

// duration returns a time in milliseconds; zero if it is absent.
func (g *groupCall) duration(name string) (time.Duration, error) {
	if v, ok := g.Body().Lookup(name); !ok || v.IsNull() {
		return 0, nil
	}
	ms, err := g.number(name, 0)
	return time.Duration(min(ms, longestCoolDown.Milliseconds())) * time.Millisecond, err
}

// partition returns the partition that a request is about.
func (g *groupCall) partition() (int, error) {
	n, err := g.number(names.GroupPartition, 0)
	if err != nil {
		return 0, err
	}
	return g.known(n)
}

// known refuses a partition that the hub does not have.
func (g *groupCall) known(n int64) (int, error) {
	if n < 0 || n >= int64(g.partitions) {
		return 0, fmt.Errorf("%w: %d of %q, whose partitions are 0 to %d", broker.ErrPartition, n, g.path, g.partitions-1)
	}
	return int(n), nil
}

// What a request takes while it waits, beside its bytes: it is read when it comes.
const (
	partitionCost = 96 // for a partition: its number, and a claim, which is the largest
	textCost      = 16 // for a text beside its bytes
)

// somePartitions returns the partition that a request is about, or all for -1.
func (g *groupCall) somePartitions() ([]int, error) {
	n, err := g.number(names.GroupPartition, -1)
	if err != nil {
		return nil, err
	}
	if n >= 0 {
		p, err := g.known(n)
		return []int{p}, err
	}
	if !g.Hold(partitionCost * int64(g.partitions)) {
		return nil, azure.ErrNoMemory
	}
	all := make([]int, g.partitions)
	for i := range all {
		all[i] = i
	}
	return all, nil
}

// partitionList returns the partitions that a request lists.
func (g *groupCall) partitionList(empty emptiness) ([]int, error) {
	v, ok := g.Body().Lookup(names.GroupPartitions)
	if (!ok || v.IsNull()) && empty == maybeEmpty {
		return nil, nil
	}
	var at []int
	err := g.each(names.GroupPartitions, -1, func(_ int, v codec.Value) error {
		n, ok := wire.Integer(v)
		if !ok {
			return azure.BadArgument(names.GroupPartitions, "an array of numbers")
		}
		p, err := g.known(n)
		at = append(at, p)
		return err
	})
	switch {
	case err != nil:
	case len(at) == 0 && empty == notEmpty:
		err = azure.BadArgument(names.GroupPartitions, "not empty")
	case !g.Hold(partitionCost * int64(len(at))):
		err = azure.ErrNoMemory
	}
	return at, err
}

// numbers reads one number of at least lowest for each of n partitions.
func (g *groupCall) numbers(name string, n int, lowest int64, to func(i int, n int64)) error {
	return g.each(name, n, func(i int, v codec.Value) error {
		value, ok := wire.Integer(v)
		if !ok || value < lowest {
			return azure.BadArgument(name, fmt.Sprintf("an array of numbers that are not less than %d", lowest))
		}
		to(i, value)
		return nil
	})
}

// maybeNumbers is numbers of an array that may be absent.
func (g *groupCall) maybeNumbers(name string, n int, lowest int64, to func(i int, n int64)) error {
	if v, ok := g.Body().Lookup(name); !ok || v.IsNull() {
		return nil
	}
	return g.numbers(name, n, lowest, to)
}

// texts reads one short text for each of n partitions.
func (g *groupCall) texts(name string, n int, to func(i int, s string)) error {
	size := 0
	err := g.each(name, n, func(i int, v codec.Value) error {
		text, ok := v.Str()
		if !ok || !shortText(text) {
			return azure.BadArgument(name, fmt.Sprintf("an array of texts of at most %d bytes without control characters", limits.Member))
		}
		to(i, strings.Clone(text)) // not to keep the request
		size += len(text) + textCost
		return nil
	})
	if err == nil && !g.Hold(int64(size)) {
		err = azure.ErrNoMemory
	}
	return err
}

// each calls fn for the elements of an array or list that has n of them; -1 is as many as
// a hub may have partitions. A list that may be absent is, if n is 0.
func (g *groupCall) each(name string, n int, fn func(i int, v codec.Value) error) error {
	v, ok := g.Body().Lookup(name)
	if n == 0 && (!ok || v.IsNull()) {
		return nil
	}
	if v.Kind() != codec.KindArray && v.Kind() != codec.KindList {
		return azure.BadArgument(name, "an array")
	}
	most := limits.Partitions
	if n >= 0 {
		most = n
	}
	i := 0
	for e := range v.List() {
		if i == most {
			return azure.BadArgument(name, fmt.Sprintf("an array of at most %d elements", most))
		}
		if err := fn(i, e); err != nil {
			return err
		}
		i++
	}
	if i < n {
		return azure.BadArgument(name, fmt.Sprintf("as long as %s: it has %d elements and not %d", names.GroupPartitions, i, n))
	}
	return nil
}
