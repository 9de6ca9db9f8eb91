// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// MemberOptions say who joins a group.
type MemberOptions struct {
	ID string // names the member; random if it is empty
	// Run names the process; random if it is empty. The same run that comes back keeps its
	// partitions as they were. Another run with the same ID takes its place.
	Run  string
	Name string // for people; at most 256 bytes
	// Keep is how long the partitions are kept for the member after its connection was
	// lost; zero is what the broker finds right, half a second.
	Keep time.Duration
}

// Assignment is all the partitions that a member has.
type Assignment struct {
	Version    uint64 // rises with each change
	Joins      uint64 // how often the member had joined when it got this; see [Member.Joins]
	Partitions int    // how many the hub has
	Grants     []Grant
}

// Grant is a partition that a member owns.
type Grant struct {
	Partition string
	// Epoch is for the reader of the partition and for its checkpoints. It rises with each
	// change of the owner and with each rewind.
	Epoch int64
	// Checkpoint is the last event that was handled, BeforeFirst or NoCheckpoint. Without
	// one the reader decides where it begins.
	Checkpoint SeqNo
	// RevokeBy is until when the member has to release the partition, by this machine's
	// clock; zero if it keeps it.
	RevokeBy time.Time
}

// PartitionReport is what a member tells about a partition that it owns.
type PartitionReport struct {
	Partition string
	Epoch     int64         // of the grant that it is about; 0 if it is not known
	Handled   SeqNo         // the last event that was handled, or NoCheckpoint
	Busy      time.Duration // how long handlers have worked since the last report
	Bytes     int64         // how many bytes they have handled since
	Skipped   int64         // how many events were gone since when their turn came
}

// Member is a process that takes part in a consumer group: the broker gives it partitions
// to read. Only one goroutine at a time may call Next; the other methods are safe for
// concurrent use.
type Member struct {
	group   *Group
	options MemberOptions
	link    *lazyValue[*link]
	joins   atomic.Uint64 // attempts to become a member
	joined  atomic.Bool   // one has succeeded
	taken   atomic.Bool   // another run has the ID
	leaving atomic.Bool
	closed  atomic.Bool
}

// memberCredit is how many assignments may come before Next asks for them.
const memberCredit = 16

// Join becomes a member of the group. Its partitions come by [Member.Next].
func (g *Group) Join(ctx context.Context, o MemberOptions) (*Member, error) {
	o.ID, o.Run = cmp.Or(o.ID, rand.Text()), cmp.Or(o.Run, rand.Text())
	m := &Member{group: g, options: o, link: newLazyValue[*link]()}
	err := g.client.retry(ctx, func(*outage) error {
		_, err := m.open(ctx)
		return err
	})
	if errors.Is(err, ErrNotAllowed) && !hasCondition(err, names.Stolen) {
		err = errors.Join(errors.ErrUnsupported, err) // it takes us for a reader
	}
	if err != nil {
		return nil, g.failure("join", err)
	}
	return m, nil
}

// ID returns the member's ID.
func (m *Member) ID() string { return m.options.ID }

// open returns the member's link, after attaching it if need be.
func (m *Member) open(ctx context.Context) (*link, error) {
	if m.closed.Load() {
		return nil, ErrClosed
	}
	conn, err := m.group.client.connection(ctx)
	if err != nil {
		return nil, err
	}
	return m.link.get(ctx, (*link).usable, func() (*link, error) {
		switch {
		case m.taken.Load():
			return nil, ErrTaken // and not taken back
		case m.leaving.Load():
			return nil, ErrClosed // it has left
		}
		address := m.group.address()
		settled := amqp.SenderSettleModeSettled
		properties := map[string]any{names.Member: m.options.ID, names.MemberRun: m.options.Run}
		if m.joined.Load() {
			properties[names.MemberBack] = true
		}
		if m.options.Name != "" {
			properties[names.MemberName] = m.options.Name
		}
		if m.options.Keep > 0 {
			properties[names.MemberKeep] = uint32(min(m.options.Keep.Milliseconds(), 1<<31))
		}
		m.joins.Add(1) // before the broker knows: a report that it accepts is of this time, or before
		l, err := authorized(ctx, conn, []string{address}, func() (*link, error) {
			return unlessClosed(&m.closed)(conn.openReceiver(ctx, address, &amqp.ReceiverOptions{
				Credit: memberCredit, RequestedSenderSettleMode: &settled, Properties: properties,
			}))
		})
		if err == nil && l.receiver.Properties()[names.Member] != m.options.ID {
			_ = l.close(ctx) // the reason below is the one that counts
			return nil, fmt.Errorf("%w: this broker has no members of consumer groups", errors.ErrUnsupported)
		}
		switch {
		case err == nil:
			m.joined.Store(true)
		case hasCondition(err, names.Stolen): // it was replaced while it was away
			m.taken.Store(true)
			err = fmt.Errorf("%w: %w", ErrTaken, err)
		}
		return l, err
	})
}

// Next waits for the newest assignment and returns it; older ones are left out. After an
// outage it joins again with the same run. Then it may return the same assignment again.
// If another run has joined with the ID since it returns [ErrTaken]: the younger one wins. After Leave it returns ErrClosed when
// the member has no partitions any more.
func (m *Member) Next(ctx context.Context) (Assignment, error) {
	var a Assignment
	err := m.group.client.retry(ctx, func(o *outage) error {
		l, err := m.open(ctx)
		if err != nil {
			return err
		}
		o.reset(time.Now())
		a, err = m.receive(ctx, l)
		return err
	})
	if err != nil {
		return Assignment{}, m.group.failure("take part in", err)
	}
	return a, nil
}

// receive waits for an assignment and takes the newest that has come.
func (m *Member) receive(ctx context.Context, l *link) (Assignment, error) {
	got, err := l.receiver.Receive(ctx, nil)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return Assignment{}, context.Cause(ctx)
	case hasCondition(err, names.Stolen):
		m.taken.Store(true)
		return Assignment{}, fmt.Errorf("%w: %w", ErrTaken, l.failed(ctx, err))
	case hasCondition(err, names.UnknownMember):
		l.broken.Store(true) // it was silent for too long, and joins again
		return Assignment{}, errJoinAgain
	default:
		return Assignment{}, l.failed(ctx, err)
	}
	for newer := l.receiver.Prefetched(); newer != nil; newer = l.receiver.Prefetched() {
		got = newer
	}
	a, err := assignment(got, time.Now())
	a.Joins = m.joins.Load()
	return a, err
}

// Joins returns how often the member has joined, or tried to. It joins again after an outage.
// What it had by the assignments before may be another's by then: only one whose Joins is this
// number says what it has, although the broker accepts its reports before that has come.
func (m *Member) Joins() uint64 { return m.joins.Load() }

// errJoinAgain means that the broker has forgotten a member that was silent.
var errJoinAgain = errors.New("client: the member was forgotten")

// assignment reads what the broker sends to a member.
func assignment(m *amqp.Message, now time.Time) (Assignment, error) {
	fields, _ := m.Value.(map[string]any)
	version, ok := fields[names.AssignmentVersion].(uint64)
	count, _ := integer(fields[names.AssignmentCount])
	partitions, _ := fields[names.GroupPartitions].([]int32)
	epochs, _ := fields[names.GroupEpochs].([]int64)
	checkpoints, _ := fields[names.GroupCheckpoints].([]int64)
	revoke, _ := fields[names.AssignmentRevoke].([]int32)
	n := len(partitions)
	if !ok || len(epochs) != n || len(checkpoints) != n || len(revoke) != n {
		return Assignment{}, fmt.Errorf("%w: %w", ErrInvalid, errBadReply)
	}
	a := Assignment{Version: version, Partitions: int(count), Grants: make([]Grant, n)}
	for i, p := range partitions {
		a.Grants[i] = Grant{Partition: partitionName(p), Epoch: epochs[i], Checkpoint: SeqNo(checkpoints[i])}
		if revoke[i] >= 0 {
			a.Grants[i].RevokeBy = now.Add(time.Duration(revoke[i]) * time.Millisecond)
		}
	}
	return a, nil
}

// Report tells the broker that the member is there and how far it is. The broker forgets
// a member that is silent for ten seconds: a report is due every three, also an empty one.
func (m *Member) Report(ctx context.Context, ps []PartitionReport) error {
	var partitions []int32
	var epochs, handled, busy, bytes, skipped []int64
	for _, p := range ps {
		n, err := partitionNumber(p.Partition)
		if err != nil {
			return m.group.failure("report to", err)
		}
		partitions, handled = append(partitions, n), append(handled, int64(p.Handled))
		busy, bytes = append(busy, int64(p.Busy)), append(bytes, p.Bytes)
		epochs, skipped = append(epochs, p.Epoch), append(skipped, p.Skipped)
	}
	fields := map[string]any{names.GroupMember: m.options.ID}
	if len(ps) > 0 {
		fields[names.GroupPartitions], fields[names.GroupHandled] = partitions, handled
		fields[names.GroupBusy], fields[names.GroupBytes] = busy, bytes
		fields[names.GroupEpochs], fields[names.GroupSkipped] = epochs, skipped
	}
	_, err := m.group.ask(ctx, names.GroupReport, fields)
	return m.group.failure("report to", err)
}

// Release gives a partition back that the member has owned with an epoch. For the time of
// the cool-down it does not get it again.
func (m *Member) Release(ctx context.Context, partition string, epoch int64, coolDown time.Duration) error {
	n, err := partitionNumber(partition)
	if err == nil {
		_, err = m.group.ask(ctx, names.GroupRelease, map[string]any{
			names.GroupMember: m.options.ID, names.GroupRun: m.options.Run, // the connection may be another by now
			names.GroupPartition: n, names.GroupEpoch: epoch, names.GroupCoolDown: coolDown.Milliseconds(),
		})
	}
	return m.group.failure("release partition "+partition+" of", err)
}

// Leave says that the member wants to go. Its partitions are revoked: Next tells until
// when they have to be released.
func (m *Member) Leave(ctx context.Context) error {
	m.leaving.Store(true)
	_, err := m.group.ask(ctx, names.GroupLeave, map[string]any{
		names.GroupMember: m.options.ID, names.GroupRun: m.options.Run, // the connection may be another by now
	})
	if errors.Is(err, ErrUnknownMember) {
		err = nil // it has left already
	}
	return m.group.failure("leave", err)
}

// Close ends the member, within five seconds. Partitions that it has go to others after
// a short while; Leave is the planned way.
func (m *Member) Close() error { return m.group.client.closing(m.shutdown) }

func (m *Member) shutdown(ctx context.Context) error {
	m.closed.Store(true)
	l, err := m.link.take(ctx)
	if err != nil {
		return m.group.failure("close member of", err)
	}
	if l == nil || !l.conn.alive() {
		return nil
	}
	return l.close(ctx)
}
