// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"strconv"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/stream"
)

const (
	// selectorCode is the descriptor of a selector filter.
	selectorCode = 0x468C00000004
	// latest is what clients write for the end of a partition.
	latest = "@latest"
)

// startOf returns where a receiver begins: its selector filter says so. Without one it is
// the oldest event. Filters of other kinds are ignored.
func startOf(source *frame.Source) (stream.Start, error) {
	if source == nil || len(source.Filter) == 0 {
		return stream.Earliest(), nil
	}
	r := codec.NewReader(source.Filter)
	filters := r.Value()
	for key, value := range filters.Map() {
		name, _ := key.Str()
		descriptor, inner, described := value.Described()
		if described {
			if code, ok := descriptor.Uint(); ok && code == selectorCode {
				name = names.SelectorFilter
			} else if symbol, ok := descriptor.Str(); ok && symbol == names.SelectorFilter {
				name = symbol
			}
			value = inner
		}
		if name != names.SelectorFilter {
			continue
		}
		text, ok := value.Str()
		if !ok {
			return stream.Start{}, badStart("a filter that is no text")
		}
		return parseStart(text)
	}
	return stream.Earliest(), nil
}

// parseStart reads a selector such as
//
//	amqp.annotation.x-opt-sequence-number > '17'
//
// Some clients leave out the prefix or the quotes.
func parseStart(selector string) (stream.Start, error) {
	at := strings.IndexAny(selector, "<>=")
	if at < 0 {
		return stream.Start{}, badStart(selector)
	}
	name := strings.TrimPrefix(strings.TrimSpace(selector[:at]), "amqp.annotation.")
	value, after := strings.CutPrefix(selector[at:], ">")
	if !after {
		return stream.Start{}, badStart(selector)
	}
	value, inclusive := strings.CutPrefix(value, "=")
	value = strings.TrimSpace(value)
	if n := len(value); n >= 2 && value[0] == '\'' && value[n-1] == '\'' {
		value = value[1 : n-1]
	}
	switch strings.ToLower(name) {
	case names.AnnotationOffset:
		return fromOffset(value, inclusive)
	case names.AnnotationSequenceNumber:
		return fromSequence(value, inclusive, selector)
	case names.AnnotationEnqueuedTime, "x-opt-enqueuedtimeutc":
		return fromTime(value, inclusive, selector)
	}
	return stream.Start{}, badStart(selector)
}

// fromOffset begins at an offset. One that is none of ours has a condition of its own,
// after which the Go SDK's processor begins with the oldest event.
func fromOffset(value string, inclusive bool) (stream.Start, error) {
	if strings.EqualFold(value, latest) {
		return stream.Latest(), nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return stream.Start{}, endpoint.Errorf(names.InvalidOffset, "The supplied offset '%s' is invalid: it is not one of this event hub.", shorten(value))
	}
	return fromNumber(n, inclusive), nil
}

func fromSequence(value string, inclusive bool, selector string) (stream.Start, error) {
	if strings.EqualFold(value, latest) {
		return stream.Latest(), nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return stream.Start{}, badStart(selector)
	}
	return fromNumber(n, inclusive), nil
}

// fromNumber begins at an event or behind it. There is none before 0: clients write -1
// for the beginning.
func fromNumber(n int64, inclusive bool) stream.Start {
	switch {
	case n < 0:
		return stream.Earliest()
	case inclusive:
		return stream.FromSeq(stream.SeqNo(n))
	}
	return stream.AfterSeq(stream.SeqNo(n))
}

// fromTime begins at a time in milliseconds since 1970.
func fromTime(value string, inclusive bool, selector string) (stream.Start, error) {
	whole, _, _ := strings.Cut(value, ".") // of clients that count in fractions
	ms, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return stream.Start{}, badStart(selector)
	}
	// Beyond these years a time cannot be computed with.
	const farthest = 1 << 52
	t := time.UnixMilli(min(max(ms, -farthest), farthest))
	if inclusive {
		return stream.FromTime(t), nil
	}
	return stream.AfterTime(t), nil
}

// badStart refuses a filter. After this condition the Go SDK does not try again.
func badStart(selector string) error {
	return endpoint.Errorf(names.ArgumentOutOfRange, "The filter does not say where to begin: '%s'. "+
		"It has to compare amqp.annotation.x-opt-offset, amqp.annotation.x-opt-sequence-number or amqp.annotation.x-opt-enqueued-time by > or >= with a value.", shorten(selector))
}

// maxQuoted is how much of what a client wrote is repeated to it.
const maxQuoted = 200

// shorten cuts a text of a client for an error.
func shorten(text string) string {
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "…"
	}
	return text
}
