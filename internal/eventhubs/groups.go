// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/stream"
)

// groupOperation is an operation about a consumer group: begin reads the request, asks for
// the right to do it for others if it is not about what is the sender's own, and returns
// what to run.
type groupOperation struct {
	begin func(c *links, g *groupCall) (azure.Run, error)
	large bool // the reply lists partitions
}

// groupOperations are those of members of groups and of programs that balance by
// themselves.
var groupOperations = map[string]groupOperation{
	names.GroupReport:        {begin: (*links).beginReport},
	names.GroupLeave:         {begin: (*links).beginLeave},
	names.GroupRelease:       {begin: (*links).beginRelease},
	names.GroupCheckpoint:    {begin: (*links).beginCheckpoint, large: true},
	names.GroupRewind:        {begin: (*links).beginRewind, large: true},
	names.GroupPause:         {begin: (*links).beginPause},
	names.GroupRead:          {begin: (*links).beginGroupRead, large: true},
	names.GroupClaim:         {begin: (*links).beginClaim, large: true},
	names.GroupOwnership:     {begin: (*links).beginOwnership, large: true},
	names.GroupSetCheckpoint: {begin: (*links).beginSetCheckpoint},
}

// operation returns how requests for it are served. At the node of the namespace they name
// the hub, as READ does; the right to the group is enough.
func (o groupOperation) operation(c *links, name string) azure.Operation {
	needs, own := access.OfRequest(name)
	return azure.Operation{
		Needs:      own,
		LargeReply: o.large,
		Entity: func(k *azure.Call) string {
			hub, group := k.Property(names.ReadName), k.Text(names.GroupName)
			if hub == "" || group == nil || *group == "" {
				return hub
			}
			return hub + "/ConsumerGroups/" + *group
		},
		Begin: func(k *azure.Call) (azure.Run, error) {
			g, err := c.groupCall(k)
			if err != nil {
				return nil, err
			}
			g.others = needs
			run, err := o.begin(c, g)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) (codec.Value, error) {
				body, err := run(ctx)
				return body, readerError(err)
			}, nil
		},
	}
}

// groupCall is a request about a consumer group.
type groupCall struct {
	*azure.Call
	path       string // of the group
	partitions int    // of the hub
	// others is the right that it needs to do it for others.
	others access.Rights
}

// groupCall finds the group that a request is about. The one in its body must not lead
// elsewhere: the right to another path was checked.
func (c *links) groupCall(k *azure.Call) (*groupCall, error) {
	p, err := entity.ParsePath(k.Entity())
	if err != nil {
		return nil, azure.BadArgument(names.ReadName, "the name of an event hub")
	}
	p.Management = false
	name := k.Text(names.GroupName)
	switch {
	case name != nil && p.Group == "":
		p.Group = *name
	case name != nil && entity.Key(*name) != entity.Key(p.Group):
		return nil, azure.BadArgument(names.GroupName, "the consumer group of the address")
	}
	if q, err := entity.ParsePath(p.String()); p.Group == "" || err != nil || q != p {
		return nil, azure.BadArgument(names.GroupName, "the name of a consumer group")
	}
	g := &groupCall{Call: k, path: wire.PathOf(p.String())}
	h, err := c.broker.HubInfo(g.path)
	g.partitions = h.PartitionCount
	return g, err
}

// member returns the member that a request is about, which has joined on the same
// connection: a process that was replaced cannot speak for the one that has its place.
func (c *links) member(g *groupCall) (*member, error) {
	id, err := g.MustText(names.GroupMember)
	if err != nil {
		return nil, err
	}
	m := c.members[memberKey{g.path, id}]
	if m == nil || m.joined == nil {
		return nil, fmt.Errorf("%w: %q has not joined on this connection", broker.ErrUnknownMember, shorten(id))
	}
	return m, nil
}

// owns reports whether members that have joined on this connection have all of some
// partitions, as far as they were told.
func (c *links) owns(path string, partitions []int) bool {
	left := make(map[int]bool, len(partitions))
	for _, p := range partitions {
		left[p] = true
	}
	for key, m := range c.members {
		if key.path == path {
			m.eachOwned(func(p int) { delete(left, p) })
		}
	}
	return len(left) == 0
}

func (c *links) beginReport(g *groupCall) (azure.Run, error) {
	m, err := c.member(g)
	if err != nil {
		return nil, err
	}
	at, err := g.partitionList(maybeEmpty)
	if err != nil {
		return nil, err
	}
	report := broker.MemberReport{Handled: make([]broker.Progress, len(at))}
	for i, p := range at {
		report.Handled[i].Partition = p
	}
	err = errors.Join(
		g.numbers(names.GroupHandled, len(at), int64(broker.Beginning), func(i int, n int64) { report.Handled[i].Handled = stream.SeqNo(n) }),
		g.numbers(names.GroupBusy, len(at), 0, func(i int, n int64) { report.Handled[i].BusyNanos = uint64(n) }),
		g.numbers(names.GroupBytes, len(at), 0, func(i int, n int64) { report.Handled[i].Bytes = uint64(n) }),
		g.maybeNumbers(names.GroupEpochs, len(at), 0, func(i int, n int64) { report.Handled[i].Epoch = n }),
		g.maybeNumbers(names.GroupSkipped, len(at), 0, func(i int, n int64) { report.Handled[i].Skipped = uint64(n) }),
	)
	if err != nil {
		return nil, err
	}
	return func(context.Context) (codec.Value, error) {
		m.joined.Report(report)
		return codec.Value{}, nil
	}, nil
}

// beginLeave needs no link of the member if the request has its run: a connection that is
// lost while a process leaves must not make its partitions wait for it.
func (c *links) beginLeave(g *groupCall) (azure.Run, error) {
	m, err := c.member(g)
	if run := g.Text(names.GroupRun); errors.Is(err, broker.ErrUnknownMember) && run != nil && *run != "" {
		id, _ := g.MustText(names.GroupMember) // it is there: else err were another
		return func(ctx context.Context) (codec.Value, error) {
			return codec.Value{}, c.broker.LeaveGroup(ctx, g.path, id, *run)
		}, nil
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (codec.Value, error) { return codec.Value{}, m.joined.Leave(ctx) }, nil
}

func (c *links) beginRelease(g *groupCall) (azure.Run, error) {
	id, err := g.MustText(names.GroupMember)
	if err != nil {
		return nil, err
	}
	p, err := g.partition()
	if err != nil {
		return nil, err
	}
	epoch, err := g.number(names.GroupEpoch, 0)
	if err != nil {
		return nil, err
	}
	coolDown, err := g.duration(names.GroupCoolDown)
	if err != nil {
		return nil, err
	}
	run := "" // that of the member is not asked for
	if _, err := c.member(g); err != nil {
		if text := g.Text(names.GroupRun); text != nil && *text != "" {
			run = strings.Clone(*text) // its connection may be another by now
		} else if err := g.Require(g.others); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) (codec.Value, error) {
		return codec.Value{}, c.broker.ReleaseGroup(ctx, g.path, broker.MemberRun{ID: id, Run: run}, p, epoch, coolDown)
	}, nil
}

func (c *links) beginCheckpoint(g *groupCall) (azure.Run, error) {
	at, err := g.partitionList(notEmpty)
	if err != nil {
		return nil, err
	}
	cs := make([]broker.Checkpoint, len(at))
	for i, p := range at {
		cs[i].Partition = p
	}
	err = errors.Join(
		g.numbers(names.GroupEpochs, len(at), 0, func(i int, n int64) { cs[i].Epoch = n }),
		g.numbers(names.GroupNumbers, len(at), int64(broker.Beginning), func(i int, n int64) { cs[i].SeqNo = stream.SeqNo(n) }),
	)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(cs, func(c broker.Checkpoint) bool { return c.SeqNo == broker.NoCheckpoint }) {
		return nil, azure.BadArgument(names.GroupNumbers, "numbers of events")
	}
	return func(ctx context.Context) (codec.Value, error) {
		each, err := c.broker.CheckpointGroup(ctx, g.path, cs)
		if err != nil {
			return codec.Value{}, err
		}
		var refused []int32
		var reasons []string
		for i, err := range each {
			if err != nil {
				refused, reasons = append(refused, int32(i)), append(reasons, c.WireError(g.path, readerError(err)).Condition)
			}
		}
		return wire.Result(
			names.GroupRefused, codec.Raw(codec.AppendIntArray(nil, refused)),
			names.GroupReasons, codec.Raw(codec.AppendStringArray(nil, reasons)),
		), nil
	}, nil
}

func (c *links) beginSetCheckpoint(g *groupCall) (azure.Run, error) {
	p, err := g.partition()
	if err != nil {
		return nil, err
	}
	n, err := g.number(names.GroupNumber, int64(broker.Beginning))
	if err != nil {
		return nil, err
	}
	if n == int64(broker.NoCheckpoint) {
		return nil, azure.BadArgument(names.GroupNumber, "the number of an event")
	}
	return func(ctx context.Context) (codec.Value, error) {
		return codec.Value{}, c.broker.SetGroupCheckpoint(ctx, g.path, broker.Checkpoint{Partition: p, SeqNo: stream.SeqNo(n)})
	}, nil
}

func (c *links) beginRewind(g *groupCall) (azure.Run, error) {
	at, err := g.somePartitions()
	if err != nil {
		return nil, err
	}
	to, err := g.position()
	if err != nil {
		return nil, err
	}
	if !c.owns(g.path, at) {
		if err := g.Require(g.others); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) (codec.Value, error) {
		before, err := c.broker.RewindGroup(ctx, g.path, at, to)
		if err != nil {
			return codec.Value{}, err
		}
		partitions, numbers := make([]int32, len(at)), make([]int64, len(at))
		for i, p := range at {
			partitions[i], numbers[i] = int32(p), int64(before[i])
		}
		return wire.Result(
			names.GroupPartitions, codec.Raw(codec.AppendIntArray(nil, partitions)),
			names.GroupNumbers, codec.Raw(codec.AppendLongArray(nil, numbers)),
		), nil
	}, nil
}

// position reads where a group is to read on.
func (g *groupCall) position() (to stream.Start, err error) {
	given := 0
	for _, from := range []struct {
		name string
		read func(codec.Value) bool
	}{
		{names.GroupEarliest, func(v codec.Value) bool { is, ok := v.Bool(); to = stream.Earliest(); return ok && is }},
		{names.GroupLatest, func(v codec.Value) bool { is, ok := v.Bool(); to = stream.Latest(); return ok && is }},
		{names.GroupNumber, func(v codec.Value) bool {
			n, ok := wire.Integer(v)
			to = stream.FromSeq(stream.SeqNo(n))
			return ok && n >= 0
		}},
		{names.GroupTime, func(v codec.Value) bool { t, ok := v.Time(); to = stream.FromTime(t); return ok }},
	} {
		v, ok := g.Body().Lookup(from.name)
		if !ok || v.IsNull() {
			continue
		}
		if given++; !from.read(v) {
			return to, azure.BadArgument(from.name, "true, a number that is not negative or a timestamp, as its name says")
		}
	}
	if given != 1 {
		return to, endpoint.Errorf(names.ArgumentError, "A rewind needs exactly one of the arguments %s, %s, %s and %s.",
			names.GroupEarliest, names.GroupLatest, names.GroupNumber, names.GroupTime)
	}
	return to, nil
}

func (c *links) beginPause(g *groupCall) (azure.Run, error) {
	at, err := g.somePartitions()
	if err != nil {
		return nil, err
	}
	var until time.Time
	if v, ok := g.Body().Lookup(names.GroupUntil); ok && !v.IsNull() {
		if until, err = g.Time(names.GroupUntil); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) (codec.Value, error) {
		return codec.Value{}, c.broker.PauseGroup(ctx, g.path, at, until)
	}, nil
}

func (c *links) beginGroupRead(g *groupCall) (azure.Run, error) {
	return func(ctx context.Context) (codec.Value, error) {
		info, err := c.broker.GroupInfo(ctx, g.path)
		if err != nil {
			return codec.Value{}, err
		}
		n := len(info.Partitions)
		partitions, owners := make([]int32, n), make([]string, n)
		epochs, numbers, times := make([]int64, n), make([]int64, n), make([]time.Time, n)
		for i, p := range info.Partitions {
			partitions[i], owners[i], epochs[i] = int32(p.Partition), p.Owner, p.Epoch
			numbers[i], times[i] = int64(broker.NoCheckpoint), time.UnixMilli(0)
			if cp := p.Checkpoint; cp != nil {
				epochs[i], numbers[i], times[i] = cp.Epoch, int64(cp.SeqNo), cp.At
			}
		}
		return wire.Result(
			names.GroupPartitions, codec.Raw(codec.AppendIntArray(nil, partitions)),
			names.GroupOwners, codec.Raw(codec.AppendStringArray(nil, owners)),
			names.GroupEpochs, codec.Raw(codec.AppendLongArray(nil, epochs)),
			names.GroupCheckpoints, codec.Raw(codec.AppendLongArray(nil, numbers)),
			names.GroupTimes, codec.Raw(codec.AppendTimestampArray(nil, times)),
		), nil
	}, nil
}

func (c *links) beginOwnership(g *groupCall) (azure.Run, error) {
	return func(ctx context.Context) (codec.Value, error) {
		os, err := c.broker.GroupClaims(ctx, g.path)
		return ownerships(os), err
	}, nil
}

func (c *links) beginClaim(g *groupCall) (azure.Run, error) {
	at, err := g.partitionList(notEmpty)
	if err != nil {
		return nil, err
	}
	cs := make([]broker.Ownership, len(at))
	for i, p := range at {
		cs[i].Partition = p
	}
	err = errors.Join(
		g.texts(names.GroupOwners, len(at), func(i int, s string) { cs[i].Owner = s }),
		g.texts(names.GroupETags, len(at), func(i int, s string) { cs[i].ETag = s }),
	)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (codec.Value, error) {
		won, err := c.broker.ClaimGroup(ctx, g.path, cs)
		return ownerships(won), err
	}, nil
}

// ownerships is the body of a reply that tells who has claimed partitions.
func ownerships(os []broker.Ownership) codec.Value {
	n := len(os)
	partitions, owners, etags, modified := make([]int32, n), make([]string, n), make([]string, n), make([]time.Time, n)
	for i, o := range os {
		partitions[i], owners[i], etags[i], modified[i] = int32(o.Partition), o.Owner, o.ETag, o.Modified
	}
	return wire.Result(
		names.GroupPartitions, codec.Raw(codec.AppendIntArray(nil, partitions)),
		names.GroupOwners, codec.Raw(codec.AppendStringArray(nil, owners)),
		names.GroupETags, codec.Raw(codec.AppendStringArray(nil, etags)),
		names.GroupModified, codec.Raw(codec.AppendTimestampArray(nil, modified)),
	)
}
