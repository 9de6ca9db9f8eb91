// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
)

// memberCost is what a member takes: its goroutine, and what the hub keeps for it.
const memberCost = 32 << 10

// longestKeep is how long partitions are kept at most for a member that is away.
const longestKeep = 24 * time.Hour

// member is a link by which a process is a member of a consumer group. It gets everything
// that the member has, each time that changes; what it does not take is replaced by what
// is newer.
type member struct {
	c    *links
	link *endpoint.Link
	path string // of the group
	id   uint64 // of the hub
	name string // ID of the member

	cancel context.CancelFunc
	joined *broker.GroupMember // nil while it has not joined
	gone   bool                // detached
	over   bool                // ended by the broker
	right  broker.Right        // by which it had joined, as it is when the link is gone
	why    error               // of that

	mu     sync.Mutex
	newest *broker.Assignment // not sent yet; nil for none; guarded by mu
	owned  []broker.Grant     // what it has now; guarded by mu
	posted bool               // send is on its way; guarded by mu
}

// memberKey names a member of a connection.
type memberKey struct{ path, id string }

// isMember reports whether a link is to be that of a member.
func isMember(remote *frame.Attach) bool {
	v, ok := wire.Lookup(remote.Properties, names.Member)
	return ok && !v.IsNull()
}

func (c *links) attachMember(l *endpoint.Link, path string) error {
	if err := c.Require(access.Listen, path); err != nil {
		return err
	}
	h, err := c.broker.HubInfo(path)
	if err != nil {
		return err
	}
	o, err := memberOptionsOf(l.Remote())
	if err != nil {
		return err
	}
	if c.joining >= limits.MembersOfConnection {
		return fmt.Errorf("%w: %d have joined on this connection, which can have no more", broker.ErrMembers, c.joining)
	}
	right, _ := c.Right(access.Listen, path)
	o.Key, o.By = right.Holder, broker.Right{Ends: right.Ends, Holds: right.Holds}
	m := &member{c: c, link: l, path: path, id: h.ID, name: o.ID}
	o.Changed = m.changed
	o.Ended = func(err error) { c.Do(func() { m.ended(err) }) }
	if !c.Counter().Take(memberCost) {
		return azure.ErrNoMemory
	}
	ctx, cancel := context.WithCancel(c.Context())
	m.cancel = cancel
	c.joining++
	c.Attached(l, m)
	c.Go(func() { m.run(ctx, o) })
	return nil
}

func (m *member) key() memberKey { return memberKey{m.path, m.name} }

// memberOptionsOf reads who wants to be a member.
func memberOptionsOf(remote *frame.Attach) (o broker.MemberOptions, err error) {
	for _, p := range []struct {
		key  string
		to   *string
		need bool
	}{{names.Member, &o.ID, true}, {names.MemberRun, &o.Run, true}, {names.MemberName, &o.Name, false}} {
		v, ok := wire.Lookup(remote.Properties, p.key)
		if (!ok || v.IsNull()) && !p.need {
			continue
		}
		text, ok := v.Str()
		if !ok || (p.need && text == "") || !shortText(text) {
			return o, endpoint.Errorf(names.ArgumentError,
				"The link property %s has to be a text of at most %d bytes without control characters.", p.key, limits.Member)
		}
		*p.to = strings.Clone(text) // not to keep the attach
	}
	if v, ok := wire.Lookup(remote.Properties, names.MemberBack); ok {
		o.Back, _ = v.Bool()
	}
	keep, err := number(remote, names.MemberKeep, 0, longestKeep.Milliseconds())
	if keep != nil {
		o.Keep = time.Duration(*keep) * time.Millisecond
	}
	return o, err
}

// shortText reports whether a text can be the ID or the name of a member, or of an owner.
func shortText(s string) bool {
	return len(s) <= limits.Member && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// run joins, and tells the broker when the link is gone, however that has come.
func (m *member) run(ctx context.Context, o broker.MemberOptions) {
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	joined, err := m.c.broker.JoinGroup(opening, m.path, o)
	cancel()
	m.c.Do(func() { m.opened(joined, err) })
	if err == nil {
		<-ctx.Done()
		joined.GoneBy(m.right)
	}
}

// opened answers the attach; it does nothing if the peer has left meanwhile.
func (m *member) opened(joined *broker.GroupMember, err error) {
	if err == nil {
		err = m.Check() // it may have waited for long
	}
	switch {
	case m.gone:
		return
	case err == nil && m.over:
		err = m.why
	}
	if err != nil {
		m.link.Refuse(m.c.WireError(m.path, err))
		return
	}
	m.joined = joined
	if m.c.members == nil {
		m.c.members = map[memberKey]*member{}
	}
	m.c.members[m.key()] = m // and not before: one that is refused does not hide another
	b, at := codec.BeginMap(nil)
	b = codec.AppendString(codec.AppendSymbol(b, names.Member), m.name)
	m.link.Accept(endpoint.Accept{Properties: codec.EndMap(b, at, 1)})
	m.send()
}

// changed takes what the member has now. It is called by the broker.
func (m *member) changed(a broker.Assignment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest, m.owned = &a, a.Grants
	if !m.posted {
		m.posted = true
		m.c.Do(m.send)
	}
}

// eachOwned calls fn for the partitions that the member has.
func (m *member) eachOwned(fn func(partition int)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.owned {
		fn(g.Partition)
	}
}

// send sends what the member has now, if it has not been sent and the peer takes it.
func (m *member) send() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.posted = false
	if m.newest == nil || m.joined == nil || !m.link.Attached() || m.link.Credit() == 0 {
		return
	}
	payload := encodeAssignment(m.newest, time.Now())
	sent, err := m.link.SendSettled(endpoint.Payloads{Bytes: payload, Ends: []int{len(payload)}}, 0)
	if err != nil {
		m.link.Detach(m.c.WireError(m.path, err))
		return
	}
	if sent > 0 {
		m.newest = nil
	}
}

// encodeAssignment makes the message that tells what a member has.
func encodeAssignment(a *broker.Assignment, now time.Time) []byte {
	n := len(a.Grants)
	partitions, revoke := make([]int32, n), make([]int32, n)
	epochs, checkpoints := make([]int64, n), make([]int64, n)
	for i, g := range a.Grants {
		partitions[i], epochs[i], checkpoints[i], revoke[i] = int32(g.Partition), g.Epoch, int64(g.Checkpoint), -1
		if !g.RevokeBy.IsZero() {
			revoke[i] = int32(min(max(g.RevokeBy.Sub(now), 0), 24*time.Hour).Milliseconds())
		}
	}
	body := wire.Result(
		names.AssignmentVersion, codec.Ulong(a.Version),
		names.AssignmentCount, codec.Int(int32(a.Partitions)),
		names.GroupPartitions, codec.Raw(codec.AppendIntArray(nil, partitions)),
		names.GroupEpochs, codec.Raw(codec.AppendLongArray(nil, epochs)),
		names.GroupCheckpoints, codec.Raw(codec.AppendLongArray(nil, checkpoints)),
		names.AssignmentRevoke, codec.Raw(codec.AppendIntArray(nil, revoke)),
	)
	d := message.Draft{Value: &body}
	return d.Encode(nil)
}

// ended detaches the link because the member has ended by itself: it has left, or another
// has its place. A hub that was deleted is said to be so.
func (m *member) ended(err error) {
	if m.gone || m.over {
		return
	}
	if errors.Is(err, broker.ErrLeft) {
		err = nil // as it was asked to
	}
	m.over, m.why = true, err
	if m.joined == nil {
		if m.why == nil {
			m.why = broker.ErrUnknownMember
		}
		return // opened says so
	}
	if gone := m.Check(); gone != nil {
		err = gone
	}
	m.forget()
	if err == nil {
		m.link.Detach(nil)
		return
	}
	m.link.Detach(m.c.WireError(m.path, err))
}

// forget makes the member unknown to requests, unless another link is that of it by now.
func (m *member) forget() {
	if m.c.members[m.key()] == m {
		delete(m.c.members, m.key())
	}
}

// Detached lets the goroutine tell the broker.
func (m *member) Detached() {
	m.gone = true
	m.right = m.standing()
	m.cancel()
	m.c.joining--
	m.forget()
	m.c.Counter().Release(memberCost)
}

// standing returns the right by which the member is there; one that has ended, if there is
// none any more.
func (m *member) standing() broker.Right {
	if r, ok := m.c.Right(access.Listen, m.path); ok {
		return broker.Right{Ends: r.Ends, Holds: r.Holds}
	}
	return broker.Right{Ends: time.Unix(0, 0)}
}

// Credit implements azure.Node.
func (m *member) Credit() {
	m.send()
	m.link.DrainDone() // there is no more than what was sent
}

// Check implements azure.Node.
func (m *member) Check() error {
	if err := m.c.IsStill(m.path, m.id); err != nil {
		return err
	}
	if err := m.c.Require(access.Listen, m.path); err != nil {
		return err
	}
	h, err := m.c.broker.HubInfo(m.path)
	if err == nil && !h.Status.CanReceive() {
		err = broker.ErrDisabled
	}
	return err
}

func (m *member) Transfer(*endpoint.Incoming)   {}
func (m *member) Disposition(*endpoint.Outcome) {}
func (m *member) Paths() []string               { return []string{m.path} }
