// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/streamserver"
)

// HubLogs has the events of hubs, and serves them.
type HubLogs interface {
	catalog.Logs
	// Hub returns the hub whose events a log has.
	Hub(log string) (*streamserver.Hub, error)
}

// hub is an event hub as an address names it.
type hub struct {
	n    *catalog.Entity
	path entity.Path
	on   *streamserver.Hub
}

func (b *Broker) hub(addr string) (hub, error) {
	n, p, err := b.FindHub(addr)
	if err != nil {
		return hub{}, err
	}
	if b.logs == nil {
		return hub{}, fmt.Errorf("%w: this broker stores no events", ErrNotAllowed)
	}
	on, err := b.logs.Hub(n.Definition().Log)
	if err != nil {
		return hub{}, fmt.Errorf("%w: %q: %w", ErrUnavailable, n.Path, err)
	}
	return hub{n, p, on}, nil
}

// ErrUnavailable means that the events of a hub cannot be reached, though it exists.
var ErrUnavailable = errors.New("broker: not available")

// ErrPartition means that a hub has no such partition.
var ErrPartition = streamserver.ErrPartition

// partition reads the number of a partition, as 0, 1, 2 and so on.
func (h hub) partition(id string) (int, error) {
	count := h.n.Definition().Hub.PartitionCount
	p, err := strconv.Atoi(id)
	if err != nil || strconv.Itoa(p) != id || p < 0 || p >= count {
		return 0, fmt.Errorf("%w: %q of %q, whose partitions are 0 to %d", ErrPartition, id, h.n.Path, count-1)
	}
	return p, nil
}

// Publisher publishes events to a hub.
type Publisher struct {
	hub
	fixed int // the partition of its address; -1 is that each batch chooses
	turn  atomic.Uint64
}

// OpenPublisher returns a publisher to a hub, to one of its partitions or for the
// publisher that an address names, which has one partition like a key.
func (b *Broker) OpenPublisher(addr string) (*Publisher, error) {
	h, err := b.hub(addr)
	switch {
	case err != nil:
		return nil, err
	case h.path.Group != "":
		return nil, fmt.Errorf("%w: events are sent to an event hub, not to a consumer group", ErrNotAllowed)
	case !h.n.Definition().Hub.Status.CanSend():
		return nil, fmt.Errorf("%w: sending to %q is disabled", ErrDisabled, h.n.Path)
	}
	p := &Publisher{hub: h, fixed: -1}
	if h.path.Partition != "" {
		if p.fixed, err = h.partition(h.path.Partition); err != nil {
			return nil, err
		}
	}
	p.turn.Store(rand.Uint64()) // so that many short ones do not begin with the same
	h.n.Touch(b.clock.Now())
	return p, nil
}

// ID is that of the entity; see catalog.Address.
func (p *Publisher) ID() uint64 { return uint64(p.n.ID) }

// MaxMessageSize is the size in bytes of the largest batch that the hub accepts.
func (p *Publisher) MaxMessageSize() int64 {
	return p.n.Definition().MaxMessage()
}

// Events is a batch of events for one partition.
type Events struct {
	Raw   []byte // a message or a batch, as it is stored; not changed before it is done
	Count int
	// Key chooses the partition: all events with the same key are in one. Nil is none.
	Key      *string
	Producer *streamserver.Producer // nil if the batch is not idempotent
}

// Publish stores a batch. It never blocks; done is called exactly once, when the batch is
// durable or rejected.
func (p *Publisher) Publish(e Events, done func(error)) {
	to, err := p.partitionOf(e)
	if size := int64(len(e.Raw) - message.StoredOverhead); err == nil && size > p.MaxMessageSize() {
		err = fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, size, p.MaxMessageSize())
	}
	if err == nil && !p.n.Definition().Hub.Status.CanSend() {
		err = fmt.Errorf("%w: sending to %q is disabled", ErrDisabled, p.n.Path)
	}
	if err != nil {
		done(err)
		return
	}
	p.on.Append(&streamserver.Append{
		Partition: to, Raw: e.Raw, Count: e.Count, Producer: e.Producer,
		Done: func(_ stream.SeqNo, err error) { done(catalog.Translate(err)) },
	})
}

// partitionOf chooses the partition of a batch.
func (p *Publisher) partitionOf(e Events) (int, error) {
	count := p.n.Definition().Hub.PartitionCount
	switch {
	case p.fixed >= 0 && e.Key != nil:
		return 0, fmt.Errorf("%w: a batch to partition %d cannot have a partition key", ErrNotAllowed, p.fixed)
	case p.fixed >= 0:
		return p.fixed, nil
	case p.path.Publisher != "":
		if e.Key != nil && *e.Key != p.path.Publisher {
			return 0, fmt.Errorf("%w: the partition key of publisher %q is its name", ErrNotAllowed, p.path.Publisher)
		}
		return stream.PartitionOf(p.path.Publisher, count), nil
	case e.Key != nil:
		return stream.PartitionOf(*e.Key, count), nil
	}
	return int(p.turn.Add(1) % uint64(count)), nil
}

// OpenProducer begins an idempotent producer at the partition of the publisher's address.
func (p *Publisher) OpenProducer(ctx context.Context, asked *streamserver.Producer) (streamserver.Producer, error) {
	if p.fixed < 0 {
		return streamserver.Producer{}, fmt.Errorf("%w: an idempotent producer sends to one partition", ErrNotAllowed)
	}
	got, err := p.on.OpenProducer(ctx, p.fixed, asked)
	return got, catalog.Translate(err)
}

// EventReaderOptions say how a partition is read; see streamserver.ReaderOptions.
type EventReaderOptions struct {
	Name  string
	Epoch *int64
	From  stream.Start
	Ended func(error)
	Space func(n int) ([]byte, error)
}

// EventReader reads a partition of a hub for a consumer group.
type EventReader struct {
	*streamserver.Reader
	id uint64
}

// ID is that of the entity; see catalog.Address.
func (r *EventReader) ID() uint64 { return r.id }

// OpenEventReader begins to read a partition, whose address names a consumer group too.
func (b *Broker) OpenEventReader(ctx context.Context, addr string, o EventReaderOptions) (*EventReader, error) {
	h, err := b.hub(addr)
	switch {
	case err != nil:
		return nil, err
	case h.path.Group == "" || h.path.Partition == "":
		return nil, fmt.Errorf("%w: events are read from a partition of a consumer group: %s/ConsumerGroups/<group>/Partitions/<number>", ErrNotAllowed, h.n.Path)
	case !h.n.Definition().Hub.Status.CanReceive():
		return nil, fmt.Errorf("%w: receiving from %q is disabled", ErrDisabled, h.n.Path)
	}
	p, err := h.partition(h.path.Partition)
	if err != nil {
		return nil, err
	}
	h.n.Touch(b.clock.Now())
	r, err := h.on.OpenReader(ctx, streamserver.ReaderOptions{
		Partition: p, Group: entity.Key(h.path.Group), Name: o.Name, Epoch: o.Epoch, From: o.From, Ended: o.Ended, Space: o.Space,
	})
	if err != nil {
		return nil, catalog.Translate(err)
	}
	return &EventReader{r, uint64(h.n.ID)}, nil
}

// HubInfo is what a hub is.
type HubInfo struct {
	entity.Hub
	ID      uint64
	Created time.Time
}

// HubInfo returns what the hub of an address is.
func (b *Broker) HubInfo(addr string) (HubInfo, error) {
	n, _, err := b.FindHub(addr)
	if err != nil {
		return HubInfo{}, err
	}
	def := n.Definition()
	return HubInfo{*def.Hub, uint64(n.ID), def.Created}, nil
}

// PartitionInfo returns the state of a partition of a hub.
func (b *Broker) PartitionInfo(ctx context.Context, addr, partition string) (streamserver.PartitionInfo, error) {
	h, err := b.hub(addr)
	if err != nil {
		return streamserver.PartitionInfo{}, err
	}
	p, err := h.partition(partition)
	if err != nil {
		return streamserver.PartitionInfo{}, err
	}
	info, err := h.on.Partition(ctx, p)
	return info, catalog.Translate(err)
}

// Partitions returns the state of all partitions of a hub, in order.
func (b *Broker) Partitions(ctx context.Context, addr string) ([]streamserver.PartitionInfo, error) {
	h, err := b.hub(addr)
	if err != nil {
		return nil, err
	}
	infos, err := h.on.Info(ctx)
	return infos, catalog.Translate(err)
}

// HubLogSettings returns the settings of the logs of all hubs, by the names of the logs.
func (b *Broker) HubLogSettings() map[string]streamserver.Settings {
	sets := map[string]streamserver.Settings{}
	for _, n := range b.Entities() {
		if n.Kind == KindHub {
			def := n.Definition()
			sets[def.Log] = def.LogSettings()
		}
	}
	return sets
}
