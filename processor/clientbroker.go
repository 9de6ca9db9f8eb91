// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
)

// clientBroker is the broker that a client is connected to.
type clientBroker struct {
	client   *client.Client
	settings *settings
	run      string // names this life of the process

	mu      sync.Mutex
	senders map[string]*client.Sender // by queue; guarded by mu
}

func newClientBroker(c *client.Client, s *settings) *clientBroker {
	return &clientBroker{client: c, settings: s, run: rand.Text(), senders: map[string]*client.Sender{}}
}

func (b *clientBroker) partitions(ctx context.Context) ([]string, error) {
	return b.client.Partitions(ctx, b.settings.hub)
}

func (b *clientBroker) last(ctx context.Context, partition string) (client.SeqNo, error) {
	return b.client.LastEvent(ctx, b.settings.hub, partition)
}

func (b *clientBroker) open(ctx context.Context, partition string, how readerOptions) (reader, error) {
	o := how.at.options()
	o.Group, o.Epoch, o.Ahead = b.settings.group, &how.epoch, how.ahead
	r, err := b.client.OpenEventReader(ctx, b.settings.hub, partition, &o)
	if err != nil {
		return nil, err
	}
	return eventReader{r}, nil
}

// eventReader is a reader of a client.
type eventReader struct{ *client.EventReader }

func (r eventReader) receive(ctx context.Context, limit int) (stored, error) {
	s, err := r.ReceiveStored(ctx, limit)
	if err != nil {
		return nil, err
	}
	return storedEvents{s}, nil
}

// storedEvents are those of a client.
type storedEvents struct{ *client.StoredEvents }

func (s storedEvents) Len() int            { return s.StoredEvents.Len }
func (s storedEvents) Size() int           { return s.StoredEvents.Size }
func (s storedEvents) SeqNo() client.SeqNo { return s.StoredEvents.SeqNo }
func (s storedEvents) Enqueued() time.Time { return s.StoredEvents.Enqueued }

func (b *clientBroker) send(ctx context.Context, queue string, m *client.Message) error {
	s, err := b.sender(ctx, queue)
	if err != nil {
		return err
	}
	return s.Send(ctx, m)
}

func (b *clientBroker) sender(ctx context.Context, queue string) (*client.Sender, error) {
	b.mu.Lock()
	s := b.senders[queue]
	b.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := b.client.OpenSender(ctx, queue, nil)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if first := b.senders[queue]; first != nil {
		go s.Close() //nolint:errcheck // it has sent nothing
		return first, nil
	}
	b.senders[queue] = s
	return s, nil
}

func (b *clientBroker) close() {
	b.mu.Lock()
	senders := b.senders
	b.senders = nil
	b.mu.Unlock()
	for _, s := range senders {
		_ = s.Close() // what it has sent was accepted
	}
}

func (b *clientBroker) join(ctx context.Context, s *settings) (fleet, error) {
	g := b.client.Group(s.hub, s.group)
	m, err := g.Join(ctx, client.MemberOptions{ID: s.id, Run: b.run, Name: s.name, Keep: s.keep})
	if err != nil {
		return nil, err
	}
	return &coordinated{group: g, member: m}, nil
}

// coordinated is a fleet that the broker coordinates.
type coordinated struct {
	group  *client.Group
	member *client.Member
	turns  turns // owned by next
}

func (c *coordinated) next(ctx context.Context) (view, error) {
	a, err := c.member.Next(ctx)
	if err != nil {
		return view{}, err
	}
	v := view{hub: a.Partitions, joins: a.Joins}
	for _, g := range a.Grants {
		v.grants = append(v.grants, grant{
			partition: g.Partition, epoch: g.Epoch, after: g.Checkpoint, revokeBy: g.RevokeBy,
		})
	}
	c.turns.number(&v)
	return v, nil
}

// turns numbers the grants of a coordinator. Its epochs do not serve: those of a group that
// was deleted and made again begin anew.
type turns struct {
	count int64
	last  map[string]grant // of the view before, by partition
}

// number sets the turns of a view: that of the view before, if it has the same grant.
func (t *turns) number(v *view) {
	last := t.last
	t.last = make(map[string]grant, len(v.grants))
	for i := range v.grants {
		g := &v.grants[i]
		if old, ok := last[g.partition]; ok && old.epoch == g.epoch {
			g.turn = old.turn
		} else {
			t.count++
			g.turn = t.count
		}
		t.last[g.partition] = *g
	}
}

func (c *coordinated) report(ctx context.Context, rs []report) (uint64, error) {
	out := make([]client.PartitionReport, len(rs))
	for i, r := range rs {
		out[i] = client.PartitionReport{
			Partition: r.partition, Epoch: r.epoch, Handled: r.handled, Busy: r.busy, Bytes: int64(r.bytes), Skipped: int64(r.skipped),
		}
	}
	err := c.member.Report(ctx, out)
	return c.member.Joins(), err // not before: it may have joined meanwhile
}

func (c *coordinated) checkpoint(ctx context.Context, ms []mark) ([]error, error) {
	out := make([]client.Checkpoint, len(ms))
	for i, m := range ms {
		out[i] = client.Checkpoint{Partition: m.grant.partition, Epoch: m.grant.epoch, SeqNo: m.seqNo}
	}
	errs, err := c.group.Checkpoint(ctx, out)
	for i, err := range errs {
		switch {
		case errors.Is(err, client.ErrFenced):
			errs[i] = errors.Join(ErrLost, err)
		case errors.Is(err, client.ErrBackwards):
			errs[i] = nil // a later one is saved
		}
	}
	return errs, err
}

func (c *coordinated) release(ctx context.Context, g grant, coolDown time.Duration) error {
	err := c.member.Release(ctx, g.partition, g.epoch, coolDown)
	if errors.Is(err, client.ErrFenced) {
		return errors.Join(ErrLost, err)
	}
	return err
}

// stolen has the partition released, if it is still ours: a reader with a higher epoch that
// is none of the fleet's has ended ours, and the next grant has a higher one.
func (c *coordinated) stolen(grant) bool { return true }

func (c *coordinated) rewind(ctx context.Context, partition string, to Position) error {
	o := to.options()
	return c.group.Rewind(ctx, partition, client.Position{After: o.After, Since: o.Since, Latest: o.Latest})
}

func (c *coordinated) leave(ctx context.Context) error { return c.member.Leave(ctx) }
func (c *coordinated) close() error                    { return c.member.Close() }

// silence is shorter than the ten seconds after which the broker takes the partitions.
func (c *coordinated) silence() time.Duration { return 9 * time.Second }
