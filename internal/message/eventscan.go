// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

// errStored says that bytes are no stored batch of events, or end within one.
var errStored = errors.New("message: not a stored batch of events")

// EventScanner takes a stored batch of events apart:
//
//	s.Open(stored)
//	for s.Next() {
//		use(s.Event())
//	}
//	err := s.Err()
//
// The zero EventScanner has no events.
type EventScanner struct {
	rest        []byte // of the stored batch, behind event
	form        byte
	event       []byte
	annotations []byte // of the envelope
	err         error
}

// Open begins with a stored batch, which must not change meanwhile.
func (s *EventScanner) Open(stored []byte) {
	*s = EventScanner{}
	if len(stored) == 0 || stored[0] != formSingle && stored[0] != formBatch {
		s.err = errStored
		return
	}
	s.form, s.rest = stored[0], stored[1:]
	if s.form == formBatch {
		s.annotations, s.rest, s.err = skipHead(s.rest)
	}
}

// Next steps to the next event, and reports whether there is one.
func (s *EventScanner) Next() bool {
	if len(s.rest) == 0 && s.form != formSingle || s.err != nil {
		return false
	}
	if s.form == formSingle {
		s.event, s.rest, s.form = s.rest, nil, 0
		return true
	}
	event, n := dataSection(s.rest)
	if n == 0 {
		s.err = errStored
		return false
	}
	s.event, s.rest = event, s.rest[n:]
	return true
}

// Event returns the event as its sender has encoded it. It shares the stored batch.
func (s *EventScanner) Event() []byte { return s.event }

// Key returns the partition key of the envelope, which is that of events that have none.
func (s *EventScanner) Key() (key string, found bool) {
	if len(s.annotations) == 0 {
		return "", false
	}
	return keyOf(s.annotations)
}

// Err returns why there are no more events, nil at the end of a batch.
func (s *EventScanner) Err() error { return s.err }

// skipHead steps over the sections of an envelope and returns its message annotations and
// its body.
func skipHead(b []byte) (annotations, body []byte, err error) {
	for code := byte(codeHeader); code <= codeApplication; code++ {
		n := sectionLen(b, code)
		if code == codeAnnotations {
			annotations = b[:n]
		}
		b = b[n:]
	}
	if _, n := dataSection(b); n == 0 {
		return nil, nil, errStored
	}
	return annotations, b, nil
}

// EventBatch is a batch of events as a hub has stored it. Receivers that ask for batches get
// several in one message, each as a data section.
type EventBatch struct {
	First  int64     // number of the first event
	At     time.Time // of all events, in milliseconds
	Count  int
	Skip   int    // events at the beginning that the receiver has not asked for
	Stored []byte // see EventScanner
}

// eventBatchHead is how long what comes before a stored batch is: first, time, count, skip.
const eventBatchHead = 8 + 8 + 4 + 4

// Size returns how many bytes AppendTo appends at most.
func (b *EventBatch) Size() int { return descriptorLen + 5 + eventBatchHead + len(b.Stored) }

// AppendTo appends the batch as a data section.
func (b *EventBatch) AppendTo(dst []byte) []byte {
	dst = codec.AppendDescriptor(dst, codeData)
	dst = append(dst, 0xb0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(eventBatchHead+len(b.Stored)))
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.First))
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.At.UnixMilli()))
	dst = binary.BigEndian.AppendUint32(dst, uint32(b.Count))
	dst = binary.BigEndian.AppendUint32(dst, uint32(b.Skip))
	return append(dst, b.Stored...)
}

// ReadEventBatch reads the content of a data section that AppendTo has written.
func ReadEventBatch(data []byte) (EventBatch, error) {
	if len(data) < eventBatchHead {
		return EventBatch{}, errStored
	}
	return EventBatch{
		First:  int64(binary.BigEndian.Uint64(data)),
		At:     time.UnixMilli(int64(binary.BigEndian.Uint64(data[8:]))),
		Count:  int(binary.BigEndian.Uint32(data[16:])),
		Skip:   int(binary.BigEndian.Uint32(data[20:])),
		Stored: data[eventBatchHead:],
	}, nil
}

// NextEventBatch reads the first batch of a message that has nothing but batches, and
// returns what is behind it.
func NextEventBatch(raw []byte) (b EventBatch, rest []byte, err error) {
	data, n := dataSection(raw)
	if n == 0 {
		return EventBatch{}, nil, errStored
	}
	b, err = ReadEventBatch(data)
	return b, raw[n:], err
}

// SplitEvent returns the sections before the body of an event, and the body if that is one
// data section and the last; ok is false for other events.
func SplitEvent(event []byte) (head, body []byte, ok bool) {
	rest := event
	for code := byte(codeHeader); code <= codeApplication; code++ {
		rest = rest[sectionLen(rest, code):]
	}
	body, n := dataSection(rest)
	return event[:len(event)-len(rest)], body, n > 0 && n == len(rest)
}

// Section is the first section of an encoded message.
type Section struct {
	Code   byte         // the last byte of its descriptor
	Fields codec.Reader // of a list, or keys and values of a map
}

// The sections of an event's head.
const (
	HeaderSection      = codeHeader
	AnnotationsSection = codeAnnotations
	PropertiesSection  = codeProperties
	ApplicationSection = codeApplication
)

// NextSection returns the first section of a head that SplitEvent has returned, and what is
// behind it.
func NextSection(head []byte) (s Section, rest []byte) {
	s.Code = head[2]
	n := sectionLen(head, s.Code)
	s.Fields.Enter(head[descriptorLen:n])
	return s, head[n:]
}
