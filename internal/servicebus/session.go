// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure/wire"
)

const (
	sessionFilter   = names.SessionFilter
	propTimeout     = names.Timeout
	propLockedUntil = names.LockedUntil

	// acceptTimeout is how long a client that says nothing else waits for the
	// next free session.
	acceptTimeout = 65 * time.Second
	// maxAcceptTimeout bounds what it may ask for.
	maxAcceptTimeout = time.Hour
)

// sessionRequest is what the filter of a source asks for.
type sessionRequest struct {
	asked bool    // there is a filter: the link is about a session
	id    *string // nil is the next one that is free
	// value is the filter as it came. The Go SDK wants a described value back,
	// the JavaScript SDK a plain one: each gets the form it sent.
	value codec.Value
}

func sessionRequestOf(source *frame.Source) sessionRequest {
	if source == nil {
		return sessionRequest{}
	}
	v, ok := wire.Lookup(source.Filter, sessionFilter)
	if !ok {
		return sessionRequest{}
	}
	w := sessionRequest{asked: true, value: v}
	inner := v
	if _, in, ok := v.Described(); ok {
		inner = in
	}
	if s, ok := inner.Str(); ok {
		id := string([]byte(s)) // the attach's bytes are not ours
		w.id = &id
	}
	return w
}

// The filter by which clients of JMS, Qpid and others choose messages in the words of
// SQL.
const (
	selectorName = "apache.org:selector-filter:string"
	selectorCode = 0x0000468C00000004
)

// checkFilters refuses a source with a selector. Which filters are in place is in our
// answer [AMQP 3.5.3], but who asks for some messages and overlooks that gets all of
// them, and removes them.
func checkFilters(source *frame.Source) error {
	if source == nil || len(source.Filter) == 0 {
		return nil
	}
	r := codec.NewReader(source.Filter)
	filters := r.Value()
	if r.Err() != nil {
		return nil
	}
	for key, value := range filters.Map() {
		name, _ := key.Str()
		if descriptor, _, ok := value.Described(); ok {
			if symbol, ok := descriptor.Str(); ok {
				name = symbol
			} else if code, ok := descriptor.Uint(); ok && code == selectorCode {
				name = selectorName
			}
		}
		if name == selectorName {
			return endpoint.Errorf(endpoint.CondNotImplemented,
				"Selectors are not supported on receivers. Use a topic, and a subscription with a rule.")
		}
	}
	return nil
}

// granted returns the source to answer with: the peer's own, its filter naming
// the session it got. Filters that we do not apply are left out, which is how
// AMQP says so [AMQP 3.5.3]. Messages are always moved, also if the peer asked for
// copies: a peek is how to look at them.
func (w sessionRequest) granted(source *frame.Source, id string) *frame.Source {
	answer := *source
	answer.Filter = nil
	if answer.DistributionMode != "" {
		answer.DistributionMode = "move"
	}
	if w.asked {
		b, at := codec.BeginMap(nil)
		b = codec.AppendSymbol(b, sessionFilter)
		if descriptor, _, ok := w.value.Described(); ok {
			b = append(b, 0x00) // constructor of a described value
			b = codec.AppendValue(b, descriptor)
		}
		b = codec.AppendString(b, id)
		answer.Filter = codec.EndMap(b, at, 1)
	}
	return &answer
}

// appendLockedUntil tells when a session lock ends. The JavaScript SDK reads the
// eight bytes of the long, so it must not be shortened.
func appendLockedUntil(b []byte, until time.Time) []byte {
	b = codec.AppendSymbol(b, propLockedUntil)
	return codec.AppendLong8(b, ticks(until))
}

// ticks is a time as .NET counts it: 100 ns since the first of January of year 1.
func ticks(t time.Time) int64 {
	const epoch = 621355968000000000 // 1970
	return epoch + t.Unix()*1e7 + int64(t.Nanosecond()/100)
}

// acceptTimeoutOf returns how long the peer is ready to wait for a session.
func acceptTimeoutOf(properties []byte) time.Duration {
	v, ok := wire.Lookup(properties, propTimeout)
	if !ok {
		return acceptTimeout
	}
	ms, ok := wire.Integer(v)
	if !ok || ms <= 0 {
		return acceptTimeout
	}
	wait := time.Duration(min(ms, maxAcceptTimeout.Milliseconds())) * time.Millisecond
	return wait - min(wait/10, answerAhead)
}

// answerAhead is how much earlier than asked a wait for a session ends. The Go
// SDK asks for all but a hundredth of its own timeout, and must hear of the end
// before that runs out to report it as what it is.
const answerAhead = 100 * time.Millisecond
