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
)

// linkProperties returns o as properties of a link; nil if there are none.
func (o *ReceiverOptions) linkProperties(entity string) map[string]any {
	properties := map[string]any{}
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
	if o.TellLevel {
		properties[propTell] = true
	}
	if len(properties) == 0 {
		return nil
	}
	return properties
}

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
	if err != nil || needed == 0 || l.receiver.Properties()[propGranted] == true {
		return l, err
	}
	_ = l.close(context.WithoutCancel(l.conn.life)) // the reason below is the one that counts
	return nil, fmt.Errorf("%w: this broker does not know receivers of priorities or of several queues", ErrNotAllowed)
}
