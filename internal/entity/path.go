// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// ErrPath means that a text is not the address of anything.
var ErrPath = errors.New("entity: bad address")

// SubQueue is one of the queues that belong to each queue and subscription.
type SubQueue uint8

// The queues at one name.
const (
	MainQueue SubQueue = iota
	DeadLetter
	TransferDeadLetter
)

// The literal segments of addresses, as Service Bus spells them. They are
// recognised in any case.
const (
	segSubscriptions = "Subscriptions"
	segGroups        = "ConsumerGroups"
	segPartitions    = "Partitions"
	segPublishers    = "Publishers"
	segDeadLetter    = "$DeadLetterQueue"
	segTransfer      = "$Transfer"
	segManagement    = "$management"
)

// String returns the segments that address the sub-queue below its queue.
func (s SubQueue) String() string {
	switch s {
	case DeadLetter:
		return segDeadLetter
	case TransferDeadLetter:
		return segTransfer + "/" + segDeadLetter
	}
	return ""
}

// Path is an address taken apart.
type Path struct {
	Entity       string // the queue, topic or hub; empty only for the namespace's own $management
	Subscription string // empty for a queue, topic or hub
	Group        string // consumer group of a hub
	Partition    string // of a hub, as it is written: it need not be a number
	Publisher    string // of a hub
	SubQueue     SubQueue
	Management   bool // the $management node of all that
}

// SubscriptionPath returns the address of a topic's subscription.
func SubscriptionPath(topic, subscription string) string {
	return topic + "/" + segSubscriptions + "/" + subscription
}

// OfHub reports whether p is a part that only an event hub has.
func (p Path) OfHub() bool { return p.Group != "" || p.Partition != "" || p.Publisher != "" }

// Queue returns the address of the queue, subscription or hub that p belongs to, without
// its parts and $management: the name by which the broker knows it.
func (p Path) Queue() string {
	if p.Subscription == "" {
		return p.Entity
	}
	return SubscriptionPath(p.Entity, p.Subscription)
}

// String returns the address in the spelling of Service Bus.
func (p Path) String() string {
	segments := make([]string, 0, 7)
	if q := p.Queue(); q != "" {
		segments = append(segments, q)
	}
	for _, part := range [...]struct{ segment, name string }{{segGroups, p.Group}, {segPartitions, p.Partition}, {segPublishers, p.Publisher}} {
		if part.name != "" {
			segments = append(segments, part.segment, part.name)
		}
	}
	if p.SubQueue != MainQueue {
		segments = append(segments, p.SubQueue.String())
	}
	if p.Management {
		segments = append(segments, segManagement)
	}
	return strings.Join(segments, "/")
}

// SameTarget reports whether two addresses to forward to are the same: none, or of the
// same entity, however they are written.
func SameTarget(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	p, err := ParsePath(a)
	q, err2 := ParsePath(b)
	return err == nil && err2 == nil && Key(p.Entity) == Key(q.Entity)
}

// ParsePath parses an address. It is read in any case, with or without slashes
// around it, and from a URL, whose host is ignored. Names may contain slashes,
// so the literal segments are searched from the right. A first segment may
// begin with $: names of the broker's own nodes do.
func ParsePath(addr string) (Path, error) {
	text, err := pathOf(addr)
	if err != nil {
		return Path{}, err
	}
	var p Path
	rest := strings.Split(text, "/")
	if rest, p.Management = cutSegment(rest, segManagement); p.Management && len(rest) == 0 {
		return p, nil
	}
	rest, dead := cutSegment(rest, segDeadLetter)
	if dead {
		p.SubQueue = DeadLetter
		var transfer bool
		if rest, transfer = cutSegment(rest, segTransfer); transfer {
			p.SubQueue = TransferDeadLetter
		}
	}
	if p.SubQueue == MainQueue {
		if rest, err = p.cutHubParts(rest); err != nil {
			return Path{}, fmt.Errorf("%w: %w", ErrPath, err)
		}
	}
	if !p.OfHub() {
		if rest, err = cutPart(rest, segSubscriptions, &p.Subscription, checkSubscriptionName); err != nil {
			return Path{}, fmt.Errorf("%w: %w", ErrPath, err)
		}
	}
	p.Entity = strings.Join(rest, "/")
	if err := checkName(strings.TrimPrefix(p.Entity, "$")); err != nil {
		return Path{}, fmt.Errorf("%w: %w", ErrPath, err)
	}
	return p, nil
}

// cutHubParts removes the parts that only a hub has: a publisher, or a partition and the
// group that reads it.
func (p *Path) cutHubParts(segments []string) (rest []string, err error) {
	rest, err = cutPart(segments, segPublishers, &p.Publisher, checkPublisherName)
	if err != nil || p.Publisher != "" {
		return rest, err
	}
	if rest, err = cutPart(rest, segPartitions, &p.Partition, checkPartition); err != nil {
		return nil, err
	}
	return cutPart(rest, segGroups, &p.Group, checkGroupName)
}

// cutPart removes the last two segments if they are a literal and the name after it.
func cutPart(segments []string, literal string, name *string, check func(string) error) (rest []string, err error) {
	n := len(segments)
	if n < 3 || !strings.EqualFold(segments[n-2], literal) {
		return segments, nil
	}
	if err := check(segments[n-1]); err != nil {
		return nil, err
	}
	*name = segments[n-1]
	return segments[:n-2], nil
}

// pathOf returns the path part of an address, which may be a URL.
func pathOf(addr string) (string, error) {
	if _, afterScheme, isURL := strings.Cut(addr, "://"); isURL {
		_, path, _ := strings.Cut(afterScheme, "/")
		path, _, _ = strings.Cut(path, "?")
		unescaped, err := url.PathUnescape(path)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrPath, err)
		}
		addr = unescaped
	}
	return strings.TrimSuffix(strings.TrimPrefix(addr, "/"), "/"), nil
}

// cutSegment removes the last segment if it is the wanted one.
func cutSegment(segments []string, want string) (rest []string, found bool) {
	last := len(segments) - 1
	if last < 0 || !strings.EqualFold(segments[last], want) {
		return segments, false
	}
	return segments[:last], true
}

// Owner returns the queue, topic or hub that an address belongs to, in the form of
// [Key]: for a subscription, a partition, a sub-queue, a $management node or an HTTP
// messages path, the entity that it is part of. The entity need not exist.
// Unlike ParsePath it accepts any path below an entity: after its first
// segment, a name has no segment that is reserved or begins with $, so the name
// ends at the first of those.
func Owner(addr string) string {
	segments := strings.Split(strings.Trim(Key(addr), "/"), "/")
	for i, segment := range segments[1:] {
		if strings.HasPrefix(segment, "$") || slices.Contains(reserved, segment) {
			return strings.Join(segments[:i+1], "/")
		}
	}
	return strings.Join(segments, "/")
}
