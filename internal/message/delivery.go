// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/names"
)

// State is the state of a message that is peeked, not received.
type State uint8

// The values of State. On the wire StateActive is zero.
const (
	StateUnset State = iota
	StateActive
	StateDeferred
	StateScheduled
)

// BrokerProperties is what the broker adds to a message that it delivers.
type BrokerProperties struct {
	SequenceNumber int64
	EnqueuedTime   time.Time
	// LockedUntil is when the lock of the delivery, or of its session, ends; zero
	// for deliveries without one.
	LockedUntil time.Time
	// LockToken identifies the lock, in the byte order of RFC 9562, if HasLock.
	LockToken [16]byte
	HasLock   bool
	// TTL is the time to live from EnqueuedTime on: the sender's, or a shorter one.
	// Zero means no expiry.
	TTL time.Duration
	// DeliveryCount is the number of earlier deliveries that failed.
	DeliveryCount uint32
	// EnqueuedSequenceNumber is the sequence number of the message in the entity
	// that it was first sent to, if it was published to a topic or forwarded; else
	// zero.
	EnqueuedSequenceNumber int64
	// DeadLetterSource names the entity whose dead-letter queue the message came
	// from by forwarding; else empty.
	DeadLetterSource string
	// Source names the entity that the message is from, for a receiver over several
	// entities; else empty.
	Source string
	// Level is the level by which the queue orders the message. It is sent if
	// HasLevel, to receivers that keep several messages at a time and ask for it.
	Level    uint8
	HasLevel bool
	// Class is the message's class in the queue's policy, for receivers that ask
	// for it; else empty.
	Class string
	// Objective is how long messages of Class may wait; zero if the policy does not say.
	Objective time.Duration
	// RetryAt is until when a peeked message waits for a retry; zero if it does not.
	RetryAt time.Time
	// State is set for peeked and for deferred messages, never for plain
	// deliveries.
	State State
}

// AppendDelivery appends m as a consumer receives it. Header and properties are
// always present, because SDKs read the delivery count and the message-id
// without a check. The annotations are the sender's with the broker's added.
// Everything from the properties on is as the sender wrote it, unless it lacks
// a message-id or has an expiry later than that of the message.
func AppendDelivery(dst []byte, m *Message, s BrokerProperties) []byte {
	dst = appendHeader(dst, m, &s)
	dst = appendDeliveryAnnotations(dst, m, &s)
	dst = appendAnnotations(dst, m, &s)
	from, expiry := s.lifetime(m)
	switch {
	case !expiry.IsZero():
		dst = appendWithExpiry(dst, m, &s, from, expiry)
	case m.hasID():
		return append(dst, m.raw[m.end[sectionAnnotations]:]...)
	default:
		dst = appendWithID(dst, m, &s)
	}
	return append(dst, m.raw[m.end[sectionProperties]:]...)
}

// appendHeader appends the header as sent, but with the effective time to live
// and with our delivery count, and without first-acquirer, which the broker
// cannot guarantee. Its fields are at most 14 bytes long, so the short form of
// a list is always sufficient.
func appendHeader(dst []byte, m *Message, s *BrokerProperties) []byte {
	ttl := s.headerTTL(m)
	if m.end[sectionHeader] == 0 && s.DeliveryCount == 0 && ttl == 0 {
		return append(dst, "\x00\x53\x70\xc0\x06\x05\x40\x40\x40\x40\x43"...)
	}
	r := m.reader(sectionHeader)
	dst = codec.AppendDescriptor(dst, codeHeader)
	dst, at := codec.BeginList(dst)
	dst = appendField(dst, &r) // durable
	dst = appendField(dst, &r) // priority
	if ttl == 0 {
		dst = appendField(dst, &r)
	} else {
		dst = codec.AppendUint(dst, ttl)
	}
	dst = codec.AppendNull(dst)
	dst = codec.AppendUint(dst, s.DeliveryCount)
	return codec.EndList(dst, at, 5)
}

// headerTTL returns the time to live in milliseconds that replaces the sender's
// in the header; zero leaves the header as it is.
func (s *BrokerProperties) headerTTL(m *Message) uint32 {
	if s.TTL <= 0 {
		return 0
	}
	ms := min(max(s.TTL.Milliseconds(), 1), math.MaxUint32)
	if h := m.Header(); h.TTL > 0 && h.TTL.Milliseconds() <= ms {
		return 0
	}
	return uint32(ms)
}

// lifetime returns the creation time and absolute expiry that replace the
// sender's in the properties: clients compute the time to live from their
// difference, if both are present. It is zero if there is nothing to change.
func (s *BrokerProperties) lifetime(m *Message) (from, expiry time.Time) {
	if s.TTL <= 0 {
		return time.Time{}, time.Time{}
	}
	from = m.CreationTime()
	end := m.AbsoluteExpiry()
	switch told := !from.IsZero() && !end.IsZero(); {
	case told && end.Sub(from) > s.TTL:
		return from, from.Add(s.TTL)
	case !told && s.TTL.Milliseconds() > math.MaxUint32:
		if from.IsZero() {
			from = s.EnqueuedTime
		}
		return from, from.Add(s.TTL) // too long for the header
	}
	return time.Time{}, time.Time{}
}

// appendWithExpiry appends the properties with another creation time and expiry.
func appendWithExpiry(dst []byte, m *Message, s *BrokerProperties, from, expiry time.Time) []byte {
	var set fieldSet
	if !m.hasID() {
		set.put(int(FieldMessageID), codec.String(string(appendID(nil, s))))
	}
	set.put(int(FieldCreationTime), codec.Timestamp(from))
	set.put(int(FieldAbsoluteExpiry), codec.Timestamp(expiry))
	return set.append(dst, codeProperties, m.reader(sectionProperties))
}

// appendField appends the next field of r as it is encoded, or null.
func appendField(dst []byte, r *codec.Reader) []byte {
	if raw := r.Raw(); len(raw) > 0 {
		return append(dst, raw...)
	}
	return codec.AppendNull(dst)
}

// The sections of a delivery whose message was sent without annotations, with
// placeholders for the values. Most messages have none; they need only a copy
// of these.
const (
	lockOnly = "\x00\x53\x71\xc1\x24\x02" +
		"\xa3\x10x-opt-lock-token\x98"

	commonPairs = "\xa3\x15x-opt-sequence-number\x81________" +
		"\xa3\x13x-opt-enqueued-time\x83________"
	unlockedAnnotations = "\x00\x53\x72\xc1\x3f\x04" + commonPairs
	lockedAnnotations   = "\x00\x53\x72\xc1\x5c\x06" + commonPairs +
		"\xa3\x12x-opt-locked-until\x83________"

	sequenceAt = 6 + 2 + 21 + 1
	enqueuedAt = sequenceAt + 8 + 2 + 19 + 1
	lockedAt   = enqueuedAt + 8 + 2 + 18 + 1
)

// appendDeliveryAnnotations appends the sender's delivery annotations with the
// lock token in place of any they may have put there.
func appendDeliveryAnnotations(dst []byte, m *Message, s *BrokerProperties) []byte {
	if m.end[sectionDelivery] == m.end[sectionHeader] {
		if !s.HasLock {
			return dst
		}
		return append(append(dst, lockOnly...), s.LockToken[:]...)
	}
	w := openMap(dst, codeDelivery)
	w.copyExcept(m.reader(sectionDelivery), func(name string) bool { return name == AnnotationLockToken })
	if s.HasLock {
		w.key(AnnotationLockToken)
		w.dst = codec.AppendUUID(w.dst, s.LockToken)
	}
	return w.close()
}

// appendAnnotations appends the sender's message annotations with the broker's.
func appendAnnotations(dst []byte, m *Message, s *BrokerProperties) []byte {
	plain := s.EnqueuedSequenceNumber == 0 && s.DeadLetterSource == "" && s.Source == "" && !s.HasLevel && s.Class == "" && s.State == StateUnset
	if plain && m.end[sectionAnnotations] == m.end[sectionDelivery] {
		return appendBrokerProperties(dst, s)
	}
	w := openMap(dst, codeAnnotations)
	w.copyExcept(m.reader(sectionAnnotations), s.owns)
	w.key(AnnotationSequenceNumber)
	w.dst = codec.AppendLong(w.dst, s.SequenceNumber)
	w.key(AnnotationEnqueuedTime)
	w.dst = codec.AppendTimestamp(w.dst, s.EnqueuedTime)
	if !s.LockedUntil.IsZero() {
		w.key(AnnotationLockedUntil)
		w.dst = codec.AppendTimestamp(w.dst, s.LockedUntil)
	}
	if s.EnqueuedSequenceNumber != 0 {
		w.key(AnnotationEnqueuedSequenceNumber)
		w.dst = codec.AppendLong(w.dst, s.EnqueuedSequenceNumber)
	}
	if s.DeadLetterSource != "" {
		w.key(AnnotationDeadLetterSource)
		w.dst = codec.AppendString(w.dst, s.DeadLetterSource)
	}
	if s.Source != "" {
		w.key(names.AnnotationSource)
		w.dst = codec.AppendString(w.dst, s.Source)
	}
	if s.HasLevel {
		w.key(names.AnnotationLevel)
		w.dst = codec.AppendUbyte(w.dst, s.Level)
	}
	if s.Class != "" {
		w.key(names.AnnotationClass)
		w.dst = codec.AppendString(w.dst, s.Class)
	}
	if s.Objective > 0 && s.Class != "" {
		w.key(names.AnnotationObjective)
		w.dst = codec.AppendLong(w.dst, s.Objective.Milliseconds())
	}
	if !s.RetryAt.IsZero() {
		w.key(names.AnnotationRetryAt)
		w.dst = codec.AppendTimestamp(w.dst, s.RetryAt)
	}
	if s.State != StateUnset {
		w.key(AnnotationState)
		w.dst = codec.AppendInt(w.dst, int32(s.State-StateActive))
	}
	return w.close()
}

// appendBrokerProperties appends the message annotations that every delivery has.
func appendBrokerProperties(dst []byte, s *BrokerProperties) []byte {
	at := len(dst)
	if s.LockedUntil.IsZero() {
		dst = append(dst, unlockedAnnotations...)
	} else {
		dst = append(dst, lockedAnnotations...)
		binary.BigEndian.PutUint64(dst[at+lockedAt:], uint64(s.LockedUntil.UnixMilli()))
	}
	binary.BigEndian.PutUint64(dst[at+sequenceAt:], uint64(s.SequenceNumber))
	binary.BigEndian.PutUint64(dst[at+enqueuedAt:], uint64(s.EnqueuedTime.UnixMilli()))
	return dst
}

// owns reports whether only the broker may set a message annotation. The
// sender's, perhaps left over from an earlier delivery, is dropped. Go clients
// panic at a null in one of the first three.
func (s *BrokerProperties) owns(name string) bool {
	switch name {
	case AnnotationSequenceNumber, AnnotationEnqueuedTime, AnnotationLockedUntil,
		AnnotationEnqueuedSequenceNumber, AnnotationState, names.AnnotationSource, names.AnnotationLevel, names.AnnotationClass,
		names.AnnotationObjective, names.AnnotationRetryAt:
		return true
	case AnnotationDeadLetterSource:
		return s.DeadLetterSource != ""
	}
	return false
}

// hasID reports whether m has properties with a message-id in them.
func (m *Message) hasID() bool {
	var fields codec.Reader
	m.enter(sectionProperties, &fields)
	return fields.Kind() != codec.KindNull
}

// appendWithID appends the properties with a generated message-id. It is
// derived from enqueued time and sequence number, not from the lock, so that
// each delivery of the message has the same one.
func appendWithID(dst []byte, m *Message, s *BrokerProperties) []byte {
	r := m.reader(sectionProperties)
	n := max(r.Left(), 1)
	dst = codec.AppendDescriptor(dst, codeProperties)
	dst, at := codec.BeginList(dst)
	dst = append(dst, "\xa1\x20"...) // a string of 32 bytes
	dst = appendID(dst, s)
	r.Skip()
	for r.More() {
		dst = append(dst, r.Raw()...)
	}
	return codec.EndList(dst, at, n)
}

func appendID(dst []byte, s *BrokerProperties) []byte {
	dst = appendHex(dst, uint64(s.EnqueuedTime.UnixMilli()))
	return appendHex(dst, uint64(s.SequenceNumber))
}

func appendHex(dst []byte, v uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[v>>shift&0xf])
	}
	return dst
}
