// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/streamserver"
)

// HubRuntime is what an event hub is like now.
type HubRuntime struct {
	// Unavailable says why the events cannot be reached; then there are no figures.
	Unavailable string     `json:"unavailable,omitzero"`
	Events      int64      `json:"events"` // that are retained
	Bytes       int64      `json:"sizeInBytes"`
	In          EventFlow  `json:"in"`
	Out         EventFlow  `json:"out"`
	Readers     int        `json:"readers"`
	LastEvent   *time.Time `json:"lastEvent,omitempty"` // when the last one came; nil without any
	CreatedAt   time.Time  `json:"createdAt"`
	UpdatedAt   time.Time  `json:"updatedAt"`
	AccessedAt  time.Time  `json:"accessedAt"`

	Groups     []GroupRuntime     `json:"groups"`
	Partitions []PartitionRuntime `json:"partitions,omitempty"` // not in lists
}

// EventFlow counts events since the hub was opened.
type EventFlow struct {
	Events    uint64  `json:"events"`
	Bytes     uint64  `json:"bytes"`
	PerSecond float64 `json:"perSecond"` // events, lately
}

// GroupRuntime is what the readers of a consumer group show of it. The furthest reader of
// a partition counts.
type GroupRuntime struct {
	Name       string  `json:"name"`
	Readers    int     `json:"readers"`
	Partitions int     `json:"partitions"` // that have a reader
	LagEvents  int64   `json:"lagEvents"`  // in these partitions together
	LagBytes   int64   `json:"lagBytes"`   // about
	LagSeconds float64 `json:"lagSeconds"` // age of the oldest event that was not read in these
}

// PartitionRuntime is what a partition is like now.
type PartitionRuntime struct {
	ID string `json:"id"`
	// First and Last are sequence numbers. An empty partition has First = Last+1.
	First     int64           `json:"firstSequenceNumber"`
	Last      int64           `json:"lastSequenceNumber"`
	LastEvent *time.Time      `json:"lastEvent,omitempty"` // when the last one came; nil without any
	Bytes     int64           `json:"sizeInBytes"`
	In        EventFlow       `json:"in"`
	Out       EventFlow       `json:"out"`
	Readers   []ReaderRuntime `json:"readers"`
}

// ReaderRuntime is a reader of a partition.
type ReaderRuntime struct {
	Group      string    `json:"group"`
	Name       string    `json:"name"`
	Epoch      *int64    `json:"epoch,omitempty"` // nil is none
	Next       int64     `json:"nextSequenceNumber"`
	LagEvents  int64     `json:"lagEvents"`
	LagBytes   int64     `json:"lagBytes"` // about
	LagSeconds float64   `json:"lagSeconds"`
	Since      time.Time `json:"since"`
}

// HubRuntime returns what an event hub is like now. One whose events cannot be reached is
// no error: it can still be changed and deleted.
func (b *Broker) HubRuntime(ctx context.Context, name string) (HubRuntime, error) {
	n, p, err := b.FindHub(name)
	if err == nil && p.OfHub() { // a caller may be allowed a part and not the whole
		err = fmt.Errorf("%w: hub %q", ErrNotFound, name)
	}
	if err != nil {
		return HubRuntime{}, err
	}
	groups, err := b.ConsumerGroups(n.Path)
	if err != nil {
		return HubRuntime{}, err
	}
	def := n.Definition()
	rt := HubRuntime{CreatedAt: def.Created, UpdatedAt: def.Updated, AccessedAt: n.Accessed(), Groups: make([]GroupRuntime, len(groups))}
	byKey := make(map[string]*GroupRuntime, len(groups))
	for i, g := range groups {
		rt.Groups[i].Name = g.Name
		byKey[entity.Key(g.Name)] = &rt.Groups[i]
	}
	infos, err := b.Partitions(ctx, n.Path)
	if errors.Is(err, ErrUnavailable) {
		rt.Unavailable = Text(err)
		return rt, nil
	}
	if err != nil {
		return HubRuntime{}, err
	}
	for _, info := range infos {
		p := partitionRuntime(info)
		countReaders(p.Readers, byKey)
		rt.add(p)
	}
	return rt, nil
}

// countReaders adds the readers of a partition to their groups, whose spelling they get.
func countReaders(readers []ReaderRuntime, groups map[string]*GroupRuntime) {
	furthest := make(map[*GroupRuntime]*ReaderRuntime)
	for i := range readers {
		r := &readers[i]
		g := groups[entity.Key(r.Group)]
		if g == nil {
			continue // it was deleted
		}
		r.Group = g.Name
		g.Readers++
		if best := furthest[g]; best == nil || r.Next > best.Next {
			furthest[g] = r
		}
	}
	for g, r := range furthest {
		g.Partitions++
		g.LagEvents += r.LagEvents
		g.LagBytes += r.LagBytes
		g.LagSeconds = max(g.LagSeconds, r.LagSeconds)
	}
}

// add adds a partition, and counts it in the figures of the hub.
func (rt *HubRuntime) add(p PartitionRuntime) {
	rt.Partitions = append(rt.Partitions, p)
	rt.Events += p.Last - p.First + 1
	rt.Bytes += p.Bytes
	rt.In.add(p.In)
	rt.Out.add(p.Out)
	rt.Readers += len(p.Readers)
	if p.LastEvent != nil && (rt.LastEvent == nil || p.LastEvent.After(*rt.LastEvent)) {
		rt.LastEvent = p.LastEvent
	}
}

func (f *EventFlow) add(other EventFlow) {
	f.Events += other.Events
	f.Bytes += other.Bytes
	f.PerSecond += other.PerSecond
}

func partitionRuntime(info streamserver.PartitionInfo) PartitionRuntime {
	p := PartitionRuntime{
		ID: strconv.Itoa(info.Partition), First: int64(info.First), Last: int64(info.Last), Bytes: int64(info.Bytes),
		In: eventFlow(info.In), Out: eventFlow(info.Out), Readers: make([]ReaderRuntime, len(info.Readers)),
	}
	if !info.LastTime.IsZero() {
		p.LastEvent = new(info.LastTime.UTC())
	}
	for i, r := range info.Readers {
		p.Readers[i] = ReaderRuntime{
			Group: r.Group, Name: r.Name, Epoch: r.Epoch, Next: int64(r.Next),
			LagEvents: r.LagEvents, LagBytes: int64(r.LagBytes), LagSeconds: r.LagTime.Seconds(), Since: r.Since.UTC(),
		}
	}
	return p
}

func eventFlow(f streamserver.Flow) EventFlow {
	return EventFlow{Events: f.Events, Bytes: f.Bytes, PerSecond: f.Rate}
}
