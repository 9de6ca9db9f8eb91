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
	Entity       string // the queue or topic; empty only for the namespace's own $management
	Subscription string // empty for a queue or topic
	SubQueue     SubQueue
	Management   bool // the $management node of all that
}

// SubscriptionPath returns the address of a topic's subscription.
func SubscriptionPath(topic, subscription string) string {
	return topic + "/" + segSubscriptions + "/" + subscription
}

// Queue returns the address of the queue or subscription that p belongs to,
// without sub-queue and $management: the name by which the broker knows it.
func (p Path) Queue() string {
	if p.Subscription == "" {
		return p.Entity
	}
	return SubscriptionPath(p.Entity, p.Subscription)
}

// String returns the address in the spelling of Service Bus.
func (p Path) String() string {
	segments := make([]string, 0, 3)
	if q := p.Queue(); q != "" {
		segments = append(segments, q)
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
	if n := len(rest); n >= 3 && strings.EqualFold(rest[n-2], segSubscriptions) {
		p.Subscription = rest[n-1]
		if err := CheckSubscriptionName(p.Subscription); err != nil {
			return Path{}, fmt.Errorf("%w: %w", ErrPath, err)
		}
		rest = rest[:n-2]
	}
	p.Entity = strings.Join(rest, "/")
	if err := CheckName(strings.TrimPrefix(p.Entity, "$")); err != nil {
		return Path{}, fmt.Errorf("%w: %w", ErrPath, err)
	}
	return p, nil
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

// Owner returns the queue or topic that an address belongs to, in the form of
// [Key]: for a subscription, a sub-queue, a $management node or an HTTP
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
