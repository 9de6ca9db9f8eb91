// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/names"
)

// EventWriter takes stored batches apart and writes their events as a receiver gets them:
// with sequence number, offset and enqueued time among the message annotations, in place
// of what the sender may have put there, and with the partition key if there is one. All
// other sections are as the sender wrote them.
//
//	w.Open(stored, first, at)
//	for w.Next() {
//		dst = w.Append(dst)
//	}
//	err := w.Err()
//
// The zero EventWriter is ready. It is meant to be kept: it remembers the annotations of
// the last event, since those of the next one are mostly the same.
type EventWriter struct {
	EventScanner
	seq int64 // of the event
	ms  uint64

	// metrics is the section of delivery annotations that every event gets; empty for
	// none.
	metrics []byte

	// envelopeKey is the partition key of the envelope, for events that have none.
	envelopeKey []byte
	hasKey      bool

	// sent are the sender's annotations that template was made from.
	sent []byte
	// template is the annotations of an event up to the digits of its offset; sequence
	// number, enqueued time and sizes are filled in.
	template []byte
	pairs    int
	seqAt    int // where they are in template
	timeAt   int
	wide     bool // its sizes have four bytes
	ready    bool
}

// Open begins with a stored batch, whose first event has the given number. The batch must
// not change until the last event was written.
func (w *EventWriter) Open(stored []byte, first int64, at time.Time) {
	w.seq, w.ms = first-1, uint64(at.UnixMilli())
	w.EventScanner.Open(stored)
	key, found := w.Key()
	if found != w.hasKey || key != string(w.envelopeKey) {
		w.envelopeKey, w.hasKey = append(w.envelopeKey[:0], key...), found
		w.ready = false
	}
}

// Next steps to the next event, and reports whether there is one.
func (w *EventWriter) Next() bool {
	w.seq++
	return w.EventScanner.Next()
}

// Size returns about how many bytes Append appends, and at least as many for events in
// the usual form.
func (w *EventWriter) Size() int { return len(w.event) + len(w.template) + len(w.metrics) + 128 }

// SetMetrics has each event carry what is known about the last event of its partition, as
// delivery annotations; see names.LastSequenceNumber.
func (w *EventWriter) SetMetrics(last int64, at, now time.Time) {
	m := openMap(w.metrics[:0], codeDelivery)
	m.addMetrics(last, at, now)
	w.metrics = m.close()
}

// Append appends the event.
func (w *EventWriter) Append(dst []byte) []byte {
	b := w.event
	var n int
	if n = sectionLen(b, codeHeader); n > 0 {
		dst = append(dst, b[:n]...)
		b = b[n:]
	}
	if n = sectionLen(b, codeDelivery); n > 0 {
		dst = w.appendDelivery(dst, b[:n])
		b = b[n:]
	} else {
		dst = append(dst, w.metrics...)
	}
	n = sectionLen(b, codeAnnotations)
	if !w.ready || string(w.sent) != string(b[:n]) {
		w.prepare(b[:n])
	}
	dst = w.appendAnnotations(dst)
	return append(dst, b[n:]...)
}

// appendDelivery appends delivery annotations of the sender, with the metrics.
func (w *EventWriter) appendDelivery(dst, section []byte) []byte {
	if len(w.metrics) == 0 {
		return append(dst, section...)
	}
	m := openMap(dst, codeDelivery)
	var r codec.Reader
	r.Enter(section[descriptorLen:])
	m.copyExcept(r, isMetric)
	r = codec.Reader{}
	r.Enter(w.metrics[descriptorLen:])
	m.copyExcept(r, func(string) bool { return false })
	return m.close()
}

// prepare makes the template for events with the given annotations of their sender.
func (w *EventWriter) prepare(section []byte) {
	w.sent = append(w.sent[:0], section...)
	t := append(w.template[:0], 0x00, 0x53, codeAnnotations, 0xd1, 0, 0, 0, 0, 0, 0, 0, 0)
	m := mapWriter{dst: t}
	key, found := string(w.envelopeKey), w.hasKey
	if len(section) > 0 {
		var r codec.Reader
		r.Enter(section[descriptorLen:])
		m.copyExcept(r, ownedByHub)
		if own, has := keyOf(section); has {
			key, found = own, true
		}
	}
	if found {
		m.key(AnnotationPartitionKey)
		m.dst = codec.AppendString(m.dst, key)
	}
	m.key(AnnotationSequenceNumber)
	m.dst = append(m.dst, 0x81, 0, 0, 0, 0, 0, 0, 0, 0)
	w.seqAt = len(m.dst) - 8
	m.key(AnnotationEnqueuedTime)
	m.dst = append(m.dst, 0x83, 0, 0, 0, 0, 0, 0, 0, 0)
	w.timeAt = len(m.dst) - 8
	m.key(AnnotationOffset)
	m.dst = append(m.dst, 0xa1, 0)
	w.template, w.pairs = m.dst, m.pairs
	const longHead, shortHead = 12, 6
	// The digits of an offset are at most 19.
	w.wide = len(w.template)-longHead+1+19 > 0xff || 2*w.pairs > 0xff
	if !w.wide {
		// Most clients write and expect the form with sizes of one byte.
		const less = longHead - shortHead
		w.template = append(w.template[:shortHead], w.template[longHead:]...)
		w.template[3] = 0xc1
		w.template[5] = byte(2 * w.pairs)
		w.seqAt -= less
		w.timeAt -= less
	} else {
		binary.BigEndian.PutUint32(w.template[8:], uint32(2*w.pairs))
	}
	w.ready = true
}

// appendAnnotations appends the message annotations of the event.
func (w *EventWriter) appendAnnotations(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, w.template...)
	digitsAt := len(dst)
	dst = strconv.AppendInt(dst, w.seq, 10)
	b := dst[at:]
	binary.BigEndian.PutUint64(b[w.seqAt:], uint64(w.seq))
	binary.BigEndian.PutUint64(b[w.timeAt:], w.ms)
	b[len(w.template)-1] = byte(len(dst) - digitsAt)
	if w.wide {
		binary.BigEndian.PutUint32(b[4:], uint32(len(b)-8))
	} else {
		b[4] = byte(len(b) - 5)
	}
	return dst
}

// ownedByHub reports whether a hub writes a message annotation itself. The partition key
// is written as a string whatever the sender made of it, because Go clients read no other
// type.
func ownedByHub(name string) bool {
	switch name {
	case AnnotationSequenceNumber, AnnotationEnqueuedTime, AnnotationOffset, AnnotationPartitionKey:
		return true
	}
	return false
}

// keyOf returns the partition key in a section of message annotations.
func keyOf(section []byte) (key string, found bool) {
	var r codec.Reader
	r.Enter(section[descriptorLen:])
	for r.More() {
		name, v := r.Value(), r.Value()
		if s, ok := name.Str(); ok && s == AnnotationPartitionKey {
			return v.Str()
		}
	}
	return "", false
}

// sectionLen returns the length of the section that b begins with, if it is the one of
// that code; else 0.
func sectionLen(b []byte, code byte) int {
	if len(b) <= descriptorLen || b[2] != code || b[0] != 0x00 || b[1] != 0x53 {
		return 0
	}
	if c := b[descriptorLen]; (c == 0xc0 || c == 0xc1) && len(b) > descriptorLen+1 {
		if n := descriptorLen + 2 + int(b[descriptorLen+1]); n <= len(b) {
			return n
		}
	}
	r := codec.NewReader(b[descriptorLen:])
	r.Skip()
	if r.Err() != nil {
		return 0
	}
	return len(b) - r.Len()
}

// addMetrics adds what is known about the last event of a partition.
func (w *mapWriter) addMetrics(last int64, at, now time.Time) {
	if last < 0 {
		at = time.UnixMilli(0)
	}
	w.key(names.LastSequenceNumber)
	w.dst = codec.AppendLong(w.dst, last)
	w.key(names.LastOffset)
	w.dst = codec.AppendString(w.dst, strconv.FormatInt(last, 10))
	w.key(names.LastEnqueuedTime)
	w.dst = codec.AppendTimestamp(w.dst, at)
	w.key(names.RetrievalTime)
	w.dst = codec.AppendTimestamp(w.dst, now)
}

func isMetric(name string) bool {
	switch name {
	case names.LastSequenceNumber, names.LastOffset, names.LastEnqueuedTime, names.RetrievalTime:
		return true
	}
	return false
}

// ProducerSequence returns the number that an idempotent producer gave the first event of
// a transfer.
func ProducerSequence(f Format, raw []byte) (seq int32, ok bool) {
	head, err := Parse(raw)
	if err != nil {
		return 0, false
	}
	v, found := head.Annotation(names.ProducerSequence)
	if !found && f == FormatBatch {
		for data := range head.Data() {
			if first, err := Parse(data); err == nil {
				v, _ = first.Annotation(names.ProducerSequence)
			}
			break
		}
	}
	n, ok := v.Int()
	return int32(n), ok && n == int64(int32(n))
}
