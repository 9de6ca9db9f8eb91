// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// Errors of consumer groups.
var (
	// ErrFenced means that a partition belongs to another member by now, or that it was
	// rewound: the epoch is not the current one.
	ErrFenced = errors.New("client: partition has a newer owner")
	// ErrBackwards means that a checkpoint is behind the one that is there.
	ErrBackwards = errors.New("client: checkpoint goes back")
	// ErrTaken means that another process has joined with the ID of a member.
	ErrTaken = errors.New("client: another process has the member's ID")
	// ErrUnknownMember means that the broker does not know a member, or no more.
	ErrUnknownMember = errors.New("client: unknown member")
	// ErrCoordinated means that a group has members, so that its partitions cannot be
	// claimed.
	ErrCoordinated = errors.New("client: group has members")
)

// Numbers of checkpoints that are none of an event.
const (
	// NoCheckpoint is the number of a checkpoint that is not there.
	NoCheckpoint SeqNo = -1
	// BeforeFirst is that of a partition that was rewound to its oldest event.
	BeforeFirst SeqNo = -2
)

// Group is a consumer group of an event hub: its members, which the broker gives
// partitions to, and its checkpoints. Programs that use package processor need none.
// Its methods are safe for concurrent use.
//
// Only our own broker has them. Others refuse with [errors.ErrUnsupported].
type Group struct {
	client    *Client
	hub, name string
}

// Group returns a consumer group; nothing is asked of the broker. An empty hub means the
// entity that the address of the broker names, an empty group $Default.
func (c *Client) Group(hub, group string) *Group {
	return &Group{client: c, hub: c.entity(hub), name: cmp.Or(group, "$Default")}
}

func (g *Group) address() string { return g.hub + "/ConsumerGroups/" + g.name }

// Checkpoint says that the events of a partition up to and including one are handled.
type Checkpoint struct {
	Partition string
	Epoch     int64     // of the owner who wrote it; 0 for none
	SeqNo     SeqNo     // or BeforeFirst
	At        time.Time // when it was written, by the broker's clock; not sent
}

// Ownership is a claim to a partition by a program that balances by itself.
type Ownership struct {
	Partition string
	Owner     string    // "" if it was given up
	ETag      string    // changes with each claim; "" if there was none
	Modified  time.Time // by the broker's clock; not sent
}

// Position is where reading begins: with the oldest event, unless one of its fields says
// otherwise. They do not combine.
type Position struct {
	After  *SeqNo    // behind the event with a number
	Since  time.Time // with the first event that was enqueued at a time or later
	Latest bool      // with the next event that is published
}

// Checkpoint writes checkpoints on behalf of the owners of partitions. The errors are
// those of the entries, in their order: [ErrFenced], [ErrBackwards] or nil. The accepted
// ones are durable. The last error says that the whole request failed.
func (g *Group) Checkpoint(ctx context.Context, cs []Checkpoint) ([]error, error) {
	each := make([]error, len(cs))
	if len(cs) == 0 {
		return each, nil
	}
	var partitions []int32
	var epochs, numbers []int64
	for _, c := range cs {
		n, err := partitionNumber(c.Partition)
		if err != nil {
			return nil, g.failure("checkpoint", err)
		}
		partitions, epochs, numbers = append(partitions, n), append(epochs, c.Epoch), append(numbers, int64(c.SeqNo))
	}
	reply, err := g.ask(ctx, names.GroupCheckpoint, map[string]any{
		names.GroupPartitions: partitions, names.GroupEpochs: epochs, names.GroupNumbers: numbers,
	})
	if err != nil {
		return nil, g.failure("checkpoint", err)
	}
	refused, _ := reply[names.GroupRefused].([]int32)
	reasons, _ := reply[names.GroupReasons].([]string)
	for i, at := range refused {
		if at < 0 || int(at) >= len(each) || i >= len(reasons) {
			return nil, g.failure("checkpoint", errBadReply)
		}
		kind := cmp.Or(conditions[reasons[i]], ErrInvalid)
		each[at] = g.failure("checkpoint of partition "+cs[at].Partition+" of", kind)
	}
	return each, nil
}

// Checkpoints returns the checkpoints that there are.
func (g *Group) Checkpoints(ctx context.Context) ([]Checkpoint, error) {
	reply, err := g.ask(ctx, names.GroupRead, map[string]any{})
	if err != nil {
		return nil, g.failure("read", err)
	}
	partitions, _ := reply[names.GroupPartitions].([]int32)
	epochs, _ := reply[names.GroupEpochs].([]int64)
	numbers, _ := reply[names.GroupCheckpoints].([]int64)
	times, _ := reply[names.GroupTimes].([]time.Time)
	if n := len(partitions); len(epochs) != n || len(numbers) != n || len(times) != n {
		return nil, g.failure("read", errBadReply)
	}
	var out []Checkpoint
	for i, p := range partitions {
		if n := SeqNo(numbers[i]); n != NoCheckpoint {
			out = append(out, Checkpoint{Partition: partitionName(p), Epoch: epochs[i], SeqNo: n, At: times[i]})
		}
	}
	return out, nil
}

// SetCheckpoint writes a checkpoint without a check, for programs that balance by
// themselves.
func (g *Group) SetCheckpoint(ctx context.Context, c Checkpoint) error {
	n, err := partitionNumber(c.Partition)
	if err == nil {
		_, err = g.ask(ctx, names.GroupSetCheckpoint, map[string]any{names.GroupPartition: n, names.GroupNumber: int64(c.SeqNo)})
	}
	return g.failure("checkpoint", err)
}

// Rewind sets the checkpoint of a partition, or of all if it is "", so that its owner
// reads on from a position. The owner keeps the partition, with a higher epoch. It needs
// Manage, or Listen for partitions of members that have joined with the same client.
func (g *Group) Rewind(ctx context.Context, partition string, to Position) error {
	n, err := partitionOrAll(partition)
	if err != nil {
		return g.failure("rewind", err)
	}
	fields := map[string]any{names.GroupPartition: n}
	if _, err := (&EventReaderOptions{After: to.After, Since: to.Since, Latest: to.Latest}).start(); err != nil {
		return g.failure("rewind", err)
	}
	switch {
	case to.After != nil:
		fields[names.GroupNumber] = int64(*to.After) + 1
	case !to.Since.IsZero():
		fields[names.GroupTime] = to.Since
	case to.Latest:
		fields[names.GroupLatest] = true
	default:
		fields[names.GroupEarliest] = true
	}
	_, err = g.ask(ctx, names.GroupRewind, fields)
	return g.failure("rewind", err)
}

// Pause takes a partition, or all if it is "", from its owner until a time. Zero ends a
// pause. It needs Manage.
func (g *Group) Pause(ctx context.Context, partition string, until time.Time) error {
	n, err := partitionOrAll(partition)
	if err != nil {
		return g.failure("pause", err)
	}
	fields := map[string]any{names.GroupPartition: n}
	if !until.IsZero() {
		fields[names.GroupUntil] = until
	}
	_, err = g.ask(ctx, names.GroupPause, fields)
	return g.failure("pause", err)
}

// Ownership returns the claims that there are, for programs that balance by themselves.
func (g *Group) Ownership(ctx context.Context) ([]Ownership, error) {
	reply, err := g.ask(ctx, names.GroupOwnership, map[string]any{})
	if err != nil {
		return nil, g.failure("read owners of", err)
	}
	return g.ownerships(reply)
}

// Claim claims partitions and returns the claims that won. A claim wins if its ETag is
// that of the last one. An empty Owner gives a partition up.
func (g *Group) Claim(ctx context.Context, cs []Ownership) ([]Ownership, error) {
	if len(cs) == 0 {
		return nil, nil
	}
	var partitions []int32
	var owners, etags []string
	for _, c := range cs {
		n, err := partitionNumber(c.Partition)
		if err != nil {
			return nil, g.failure("claim", err)
		}
		partitions, owners, etags = append(partitions, n), append(owners, c.Owner), append(etags, c.ETag)
	}
	reply, err := g.ask(ctx, names.GroupClaim, map[string]any{
		names.GroupPartitions: partitions, names.GroupOwners: owners, names.GroupETags: etags,
	})
	if err != nil {
		return nil, g.failure("claim", err)
	}
	return g.ownerships(reply)
}

func (g *Group) ownerships(reply map[string]any) ([]Ownership, error) {
	partitions, _ := reply[names.GroupPartitions].([]int32)
	owners, _ := reply[names.GroupOwners].([]string)
	etags, _ := reply[names.GroupETags].([]string)
	modified, _ := reply[names.GroupModified].([]time.Time)
	if n := len(partitions); len(owners) != n || len(etags) != n || len(modified) != n {
		return nil, g.failure("read owners of", errBadReply)
	}
	out := make([]Ownership, len(partitions))
	for i, p := range partitions {
		out[i] = Ownership{Partition: partitionName(p), Owner: owners[i], ETag: etags[i], Modified: modified[i]}
	}
	return out, nil
}

// errBadReply means that a reply lacks something, or has too much.
var errBadReply = errors.New("client: odd reply")

// ask sends a request about the group.
func (g *Group) ask(ctx context.Context, operation string, fields map[string]any) (map[string]any, error) {
	fields[names.GroupName] = g.name
	reply, err := g.client.manageHub(ctx, hubRequest{
		hub: g.hub, operation: operation, fields: fields, needs: []string{g.address()},
	})
	if hasCondition(err, names.NotImplemented) || (err == nil && reply == nil) {
		err = errors.Join(errors.ErrUnsupported, err)
	}
	return reply, err
}

func (g *Group) failure(doing string, err error) error {
	if err == nil {
		return nil
	}
	return failure(doing, g.address(), err)
}

// hubRequest is a request about an event hub.
type hubRequest struct {
	hub, operation     string
	properties, fields map[string]any
	needs              []string // paths that tokens are put for
}

// manageHub asks about an event hub, which the request names: the hubs of a connection
// share the node of the namespace. Azure Event Hubs has no others.
func (c *Client) manageHub(ctx context.Context, r hubRequest) (map[string]any, error) {
	var reply map[string]any
	err := c.retry(ctx, func(*outage) error {
		conn, err := c.connection(ctx)
		if err != nil {
			return err
		}
		ask := request{fields: r.fields}.encode(ctx, r.operation)
		ask.ApplicationProperties[names.ReadName] = r.hub
		maps.Copy(ask.ApplicationProperties, r.properties)
		m, err := authorized(ctx, conn, r.needs, func() (*amqp.Message, error) {
			node, err := conn.node(ctx, names.Management, nil)
			if err != nil {
				return nil, err
			}
			return node.call(ctx, ask)
		})
		if err != nil {
			return err
		}
		reply, _ = m.Value.(map[string]any)
		return nil
	})
	return reply, err
}

// partitionName returns the name of a partition.
func partitionName(n int32) string { return strconv.Itoa(int(n)) }

// partitionNumber reads the name of a partition.
func partitionNumber(name string) (int32, error) {
	n, err := strconv.ParseInt(name, 10, 32)
	if err != nil || n < 0 || partitionName(int32(n)) != name {
		return 0, fmt.Errorf("%w: %q is not the name of a partition", ErrInvalid, name)
	}
	return int32(n), nil
}

// partitionOrAll is partitionNumber, with "" for all of them.
func partitionOrAll(name string) (int32, error) {
	if name == "" {
		return -1, nil
	}
	return partitionNumber(name)
}
