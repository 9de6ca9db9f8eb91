// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/filter/value"
	"github.com/triagemq/triagemq/internal/message"
)

// Envelope is the [View] of a message together with what the broker knows of
// it. Message is required. Fields of BrokerProperties left at zero have no
// value yet: rules that use them fail. Keep one Envelope and refill it; as an
// interface value it then costs no allocation.
type Envelope struct {
	Message          *message.Message
	BrokerProperties message.BrokerProperties
	ExpiresAt        time.Time // zero: computed from the enqueued time and the time to live

	// IDs makes the results of newid(). Without it rules that ask for one fail.
	IDs func() [16]byte

	// Values that were read are cached, because several rules use the same ones and
	// every search in the message would start at its front. Application properties
	// are all read when the first one is used.
	read   *message.Message         // the message that the following is of
	props  []property               // reused from message to message; empty if they are many
	system [systemNames]value.Value // the sender's, if in filled; the broker's as last read
	filled uint32                   // bit per element of system
	many   []property               // all properties if they are many
	index  *nameIndex               // if there are many, from the first use on
}

// property is an application property of the current message.
type property struct {
	name  string
	value value.Value
}

// endOfTime is the expiry that Service Bus reports for messages that do not
// expire.
var endOfTime = time.Date(9999, time.December, 31, 23, 59, 59, 999_999_900, time.UTC)

// forever is the time to live of messages whose sender set none.
const forever = math.MaxInt64

// User returns an application property.
func (e *Envelope) User(name string) *value.Value {
	if e.read != e.Message {
		e.open()
	}
	for i := range e.props {
		// Names of one length mostly differ at their ends, and comparing those
		// saves a call.
		if p := &e.props[i]; len(p.name) == len(name) && last(p.name) == last(name) && p.name == name {
			return &p.value
		}
	}
	for i := range e.props {
		if p := &e.props[i]; strings.EqualFold(p.name, name) {
			return &p.value
		}
	}
	if len(e.many) > 0 {
		return e.search(name)
	}
	return nil
}

func last(s string) byte {
	if s == "" {
		return 0
	}
	return s[len(s)-1]
}

// scanned is up to how many properties are searched one by one.
const scanned = 64

// nameIndex finds properties by name where there are many: with a million of
// them, which fit into one message, every lookup would take milliseconds.
type nameIndex struct {
	exact  map[string]int32 // first property of a name
	folded map[string]int32 // first property of a name in any case, by fold
}

// search is User for many properties.
func (e *Envelope) search(name string) *value.Value {
	if e.index == nil {
		e.index = indexNames(e.many)
	}
	i, ok := e.index.exact[name]
	if !ok {
		i, ok = e.index.folded[fold(name)]
	}
	if !ok {
		return nil
	}
	return &e.many[i].value
}

func indexNames(ps []property) *nameIndex {
	ix := &nameIndex{make(map[string]int32, len(ps)), make(map[string]int32, len(ps))}
	for i := range ps {
		name := ps[i].name
		if _, known := ix.exact[name]; known {
			continue
		}
		ix.exact[name] = int32(i)
		key := fold(name)
		if _, known := ix.folded[key]; !known {
			ix.folded[key] = int32(i)
		}
	}
	return ix
}

// fold returns the same spelling for all names that strings.EqualFold calls
// equal.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			least := r
			for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
				least = min(least, next)
			}
			r = least
		}
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, name)
}

// open drops the message before and reads the properties of the new one.
func (e *Envelope) open() {
	e.read, e.props, e.filled = e.Message, e.props[:0], 0
	if e.many != nil {
		e.many, e.index = nil, nil
	}
	var r codec.Reader
	e.Message.ReadProperties(&r)
	for r.More() {
		e.props = append(e.props, property{})
		p := &e.props[len(e.props)-1]
		name, v := r.Pair()
		p.name = name
		p.value.Read(v)
	}
	if len(e.props) > scanned {
		e.many, e.props = e.props, nil
	}
}

// Forget drops the message, so that an Envelope that is kept for the next one
// does not keep the memory of the last.
func (e *Envelope) Forget() {
	clear(e.props)
	for name := range e.system {
		if e.filled&(1<<name) != 0 {
			e.system[name] = value.Value{}
		}
	}
	e.Message, e.read, e.props, e.filled = nil, nil, e.props[:0], 0
	if e.many != nil {
		e.many, e.index = nil, nil
	}
}

// NewID returns a fresh id.
func (e *Envelope) NewID() (id [16]byte, ok bool) {
	if e.IDs == nil {
		return id, false
	}
	return e.IDs(), true
}

// System returns a system property.
func (e *Envelope) System(name SystemName) *value.Value {
	if !name.Settable() {
		v, ok := e.stamped(name)
		if !ok {
			return nil
		}
		e.system[name] = v
		return &e.system[name]
	}
	if e.read != e.Message {
		e.open()
	}
	v := &e.system[name]
	if e.filled&(1<<name) == 0 {
		e.filled |= 1 << name
		if f, ok := fieldOf(name); ok {
			v.ReadField(e.Message.Field(f))
		} else {
			*v = e.fromSender(name)
		}
	}
	return v
}

// fromSender reads what the sender wrote elsewhere than in the properties section.
func (e *Envelope) fromSender(name SystemName) value.Value {
	switch name {
	case PartitionKey:
		return e.annotation(message.AnnotationPartitionKey)
	case ViaPartitionKey:
		return e.annotation(message.AnnotationViaPartitionKey)
	case ScheduledEnqueueTimeUTC:
		return e.annotation(message.AnnotationScheduledEnqueueTime)
	case TimeToLive:
		return value.MakeTicks(e.ttl())
	case ForcePersistence:
		return value.MakeBool(e.Message.Header().Durable)
	default:
		return value.MakeNull()
	}
}

// fields is the field of the properties section for each system property,
// counted from one; zero where there is none.
var fields = [systemNames]message.Field{
	MessageID:        message.FieldMessageID + 1,
	CorrelationID:    message.FieldCorrelationID + 1,
	ContentType:      message.FieldContentType + 1,
	Subject:          message.FieldSubject + 1,
	To:               message.FieldTo + 1,
	ReplyTo:          message.FieldReplyTo + 1,
	SessionID:        message.FieldSessionID + 1,
	ReplyToSessionID: message.FieldReplyToSessionID + 1,
}

// fieldOf returns the field of the properties section behind a system property.
func fieldOf(name SystemName) (message.Field, bool) {
	f := fields[name]
	return f - 1, f > 0
}

func (e *Envelope) annotation(name string) value.Value {
	v, _ := e.Message.Annotation(name)
	return value.FromWire(v)
}

// ttl returns the time to live in ticks. If it is too long for the header, it
// is the difference of creation time and expiry.
func (e *Envelope) ttl() int64 {
	if end := e.Message.AbsoluteExpiry(); !end.IsZero() {
		if from := e.Message.CreationTime(); !from.IsZero() {
			return value.MakeTime(end).Ticks() - value.MakeTime(from).Ticks()
		}
	}
	if h := e.Message.Header(); h.TTLSet {
		return value.MakeDuration(h.TTL).Ticks()
	}
	return forever
}

// stamped returns what the broker wrote, if it has.
func (e *Envelope) stamped(name SystemName) (value.Value, bool) {
	s := &e.BrokerProperties
	switch name {
	case SequenceNumber:
		return value.MakeInt(s.SequenceNumber), s.SequenceNumber != 0
	case EnqueuedSequenceNumber:
		return value.MakeInt(s.EnqueuedSequenceNumber), s.EnqueuedSequenceNumber != 0
	case EnqueuedTimeUTC:
		return value.MakeTime(s.EnqueuedTime), !s.EnqueuedTime.IsZero()
	case ExpiresAtUTC:
		return e.expiresAt()
	case LockedUntilUTC:
		return value.MakeTime(s.LockedUntil), !s.LockedUntil.IsZero()
	case LockToken:
		return value.MakeUUID(s.LockToken), s.HasLock
	case Size:
		return value.MakeInt(int64(e.Message.Size())), true
	case DeliveryCount:
		return value.MakeInt(int64(s.DeliveryCount)), true
	case State: // counts from zero, which is active
		return value.MakeInt(int64(max(s.State, message.StateActive) - message.StateActive)), true
	case DeadLetterSource:
		if s.DeadLetterSource == "" {
			return value.MakeNull(), true
		}
		return value.MakeString(s.DeadLetterSource), true
	default:
		return value.Value{}, false
	}
}

func (e *Envelope) expiresAt() (value.Value, bool) {
	if !e.ExpiresAt.IsZero() {
		return value.MakeTime(e.ExpiresAt), true
	}
	if e.BrokerProperties.EnqueuedTime.IsZero() {
		return value.Value{}, false
	}
	from, ttl := value.MakeTime(e.BrokerProperties.EnqueuedTime), value.MakeTicks(e.ttl())
	at := value.Add(&from, &ttl)
	if end := value.MakeTime(endOfTime); value.Compare(&at, &end) != value.Less {
		return end, true
	}
	return at, true
}
