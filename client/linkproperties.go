// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// SourceSelection is how the broker chooses among the sources of a receiver.
type SourceSelection uint8

// The rules.
const (
	// ByOrder serves the first source, in the order given, that has a message.
	ByOrder SourceSelection = iota
	// ByLevel serves the source whose next message has the highest level; among
	// equals the first in the order given.
	ByLevel
)

// Properties of a receiver's link that only our own broker knows. It says that it
// does by propGranted in its answer.
const (
	propMinLevel        = names.MinLevel
	propMaxLevel        = names.MaxLevel
	propMinClass        = names.MinClass
	propMaxClass        = names.MaxClass
	propSources         = names.Sources
	propSourceSelection = names.SourceSelection
	propRecall          = names.Recall
	propDurable         = names.DurableLocks
	propTell            = names.TellLevel
	propLink            = names.Link
	propGranted         = names.Granted

	recallSuffix = names.RecallSuffix // of the address at which messages are recalled
)

// Message annotations that only our own broker writes.
const (
	annotationFrom  = names.AnnotationSource
	annotationLevel = names.AnnotationLevel
	annotationClass = names.AnnotationClass

	annotationObjective = names.AnnotationObjective // milliseconds
	annotationRetryAt   = names.AnnotationRetryAt
)

// linkProperties returns o as properties of a link. TellLevel is always one, so that the
// broker answers whether it knows such properties.
func (o *ReceiverOptions) linkProperties(entity string) map[string]any {
	properties := map[string]any{propTell: o.TellLevel}
	bound := func(p Priority, level, class string) {
		if p == "" {
			return
		}
		if n, name, err := p.split(); err == nil && name == "" {
			properties[level] = n
		} else {
			properties[class] = string(p) // the broker says what is wrong with it
		}
	}
	bound(o.MinPriority, propMinLevel, propMinClass)
	bound(o.MaxPriority, propMaxLevel, propMaxClass)
	if len(o.Sources) > 0 {
		properties[propSources] = append([]string{entity}, o.Sources...)
		properties[propSourceSelection] = "order"
		if o.SourceSelection == ByLevel {
			properties[propSourceSelection] = "level"
		}
	}
	if o.DurableLocks {
		properties[propDurable] = true
	}
	return properties
}

// Extensions reports whether the broker knows what goes beyond Service Bus: receivers of
// priorities or of several queues, Poll in one round trip, Release with properties that
// counts as no failure, recall of what was prefetched, Retry, SaveState, locks that survive
// a restart of the broker.
func (r *Receiver) Extensions() bool { return r.extensions.Load() }

// granted passes a link on if the peer has understood what it was asked for.
// Brokers that do not would silently give the wrong messages.
func (r *Receiver) granted(l *link, err error) (*link, error) {
	// To give messages back is an offer; a broker that does not take it up does
	// no harm. Nor does one that tells no levels.
	needed := len(r.linkProperties)
	for _, name := range []string{propRecall, propTell} {
		if _, offered := r.linkProperties[name]; offered {
			needed--
		}
	}
	if err != nil {
		return nil, err
	}
	r.extensions.Store(l.receiver.Properties()[propGranted] == true)
	if needed == 0 || r.extensions.Load() {
		return l, nil
	}
	_ = l.close(context.WithoutCancel(l.conn.life)) // the reason below is the one that counts
	return nil, fmt.Errorf("%w: this broker does not know receivers of priorities or of several queues", ErrNotAllowed)
}
