// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/admin/property"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// fields are what messages have on their way in and out.
type fields struct {
	MessageID        string          `json:"messageId,omitzero"`
	CorrelationID    string          `json:"correlationId,omitzero"`
	SessionID        *string         `json:"sessionId,omitempty"` // the empty string is a session too
	Subject          string          `json:"subject,omitzero"`
	To               string          `json:"to,omitzero"`
	ReplyTo          string          `json:"replyTo,omitzero"`
	ReplyToSessionID string          `json:"replyToSessionId,omitzero"`
	ContentType      string          `json:"contentType,omitzero"`
	PartitionKey     string          `json:"partitionKey,omitzero"`
	TimeToLive       entity.Duration `json:"timeToLive,omitzero"`
	Priority         *uint8          `json:"priority,omitempty"` // of the AMQP header
	ScheduledTime    time.Time       `json:"scheduledEnqueueTime,omitzero"`
}

// BodyType says how a body is written in JSON.
type BodyType string

// The ways.
const (
	BodyText   BodyType = "text"   // a string with the bytes as they are
	BodyBase64 BodyType = "base64" // a string with the bytes in base64
	BodyJSON   BodyType = "json"   // any JSON; of received messages, a value of AMQP
)

// Outgoing is a message to send.
type Outgoing struct {
	fields
	// Properties are the application properties. A value may have a type: {"type":
	// "int", "value": "5"}.
	Properties map[string]json.RawMessage `json:"properties,omitempty"`
	// Body is a string, taken as it is or as BodyType says, or anything else,
	// which is sent as JSON.
	Body     json.RawMessage `json:"body,omitempty"`
	BodyType BodyType        `json:"bodyType,omitzero"`
}

// message makes the message.
func (o *Outgoing) message() (*message.Message, error) {
	d := message.Draft{
		To: o.To, Subject: o.Subject, ReplyTo: o.ReplyTo, ReplyToSessionID: o.ReplyToSessionID,
		ContentType: o.ContentType,
	}
	if o.MessageID != "" {
		d.MessageID = codec.String(o.MessageID)
	}
	if o.CorrelationID != "" {
		d.CorrelationID = codec.String(o.CorrelationID)
	}
	if o.SessionID != nil {
		d.SessionID, d.HasSession = *o.SessionID, true
	}
	if o.Priority != nil {
		d.Priority, d.PrioritySet = *o.Priority, true
	}
	if o.PartitionKey != "" {
		d.Annotations = append(d.Annotations, message.Pair{Name: message.AnnotationPartitionKey, Value: codec.String(o.PartitionKey)})
	}
	if !o.ScheduledTime.IsZero() {
		d.Annotations = append(d.Annotations, message.Pair{Name: message.AnnotationScheduledEnqueueTime, Value: codec.Timestamp(o.ScheduledTime)})
	}
	o.setTTL(&d)
	for _, name := range slices.Sorted(maps.Keys(o.Properties)) {
		v, err := property.Parse(o.Properties[name])
		if err != nil {
			return nil, problem.Bad("Property %q: %v.", name, err)
		}
		d.Application = append(d.Application, message.Pair{Name: name, Value: v})
	}
	if err := o.setBody(&d); err != nil {
		return nil, err
	}
	return d.Message(), nil
}

// setTTL writes a time to live; one that is too long for the header becomes
// creation time and expiry.
func (o *Outgoing) setTTL(d *message.Draft) {
	const most = (1<<32 - 1) * time.Millisecond
	switch ttl := o.TimeToLive.Std(); {
	case o.TimeToLive == entity.Forever:
	case ttl <= most:
		d.TTL = ttl
	default:
		d.CreationTime = time.Now()
		d.AbsoluteExpiry = d.CreationTime.Add(ttl)
	}
}

func (o *Outgoing) setBody(d *message.Draft) error {
	if len(o.Body) == 0 {
		return nil
	}
	var text string
	isText := o.Body[0] == '"' && json.Unmarshal(o.Body, &text) == nil
	switch {
	case o.BodyType == BodyJSON || o.BodyType == "" && !isText:
		d.Body = o.Body
		if d.ContentType == "" {
			d.ContentType = "application/json"
		}
	case !isText:
		return problem.Bad("A body of type %s is a string.", o.BodyType)
	case o.BodyType == BodyText || o.BodyType == "":
		d.Body = []byte(text)
	case o.BodyType == BodyBase64:
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return problem.Bad("The body is not base64.")
		}
		d.Body = b
	default:
		return problem.Bad("The bodyType is %q; it is text, base64 or json.", o.BodyType)
	}
	return nil
}

// Message is a message as it is shown.
type Message struct {
	fields
	SequenceNumber         queue.SeqNo `json:"sequenceNumber"`
	EnqueuedSequenceNumber queue.SeqNo `json:"enqueuedSequenceNumber,omitzero"` // in the topic, say
	State                  string      `json:"state"`                           // ready, locked, deferred, scheduled or retrying
	Level                  queue.Level `json:"level"`
	Class                  string      `json:"class,omitzero"` // of the queue's policy
	DeliveryCount          uint32      `json:"deliveryCount"`  // deliveries that failed
	EnqueuedAt             time.Time   `json:"enqueuedAt"`
	LockedUntil            time.Time   `json:"lockedUntil,omitzero"`
	RetryAt                time.Time   `json:"retryAt,omitzero"` // of one that is retrying
	ExpiresAt              time.Time   `json:"expiresAt,omitzero"`

	DeadLetterReason      string `json:"deadLetterReason,omitzero"`
	DeadLetterDescription string `json:"deadLetterDescription,omitzero"`
	DeadLetterSource      string `json:"deadLetterSource,omitzero"`

	Properties map[string]any `json:"properties"`
	Size       int            `json:"size"` // of the whole message, in bytes
	Body       any            `json:"body,omitempty"`
	BodyType   BodyType       `json:"bodyType,omitzero"`
	Truncated  bool           `json:"truncated,omitzero"` // the body is longer
	// PropertiesTruncated says that properties are left out, because they are too
	// large in JSON.
	PropertiesTruncated bool `json:"propertiesTruncated,omitzero"`
}

var stateNames = map[queue.State]string{
	queue.Ready: "ready", queue.Locked: "locked", queue.Deferred: "deferred", queue.Scheduled: "scheduled",
	queue.Retrying: "retrying",
}

// shown is a Message as it is written. Its properties are the JSON itself: a map of a
// message with thousands of small ones takes thirty times what they take in the message.
type shown struct {
	Message
	Properties propertiesJSON `json:"properties"`
}

// propertiesJSON is a JSON object.
type propertiesJSON []byte

// MarshalJSON implements [json.Marshaler].
func (p propertiesJSON) MarshalJSON() ([]byte, error) { return p, nil }

// encode returns the JSON of a message. A message that has no JSON is shown by its number, its
// state and its size, so that it can be found and removed and does not end the list that it is in.
func (s *shown) encode() ([]byte, error) {
	b, err := json.Marshal(s)
	if err == nil {
		return b, nil
	}
	return json.Marshal(Message{SequenceNumber: s.SequenceNumber, State: s.State, Level: s.Level, Size: s.Size,
		Properties: map[string]any{}, PropertiesTruncated: true, Truncated: true})
}

// jsonTime returns a time in UTC that has a text in JSON, which has four digits for the year: the
// first or the last such second is for a time beyond. A sender can name any time.
func jsonTime(t time.Time) time.Time {
	switch t = t.UTC(); {
	case t.Year() < 0:
		return time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	case t.Year() > 9999:
		return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	return t
}

// show describes a message, with at most limit bytes of its body.
func show(d *broker.Delivery, m *message.Message, limit int) shown {
	s := shown{Message: Message{
		SequenceNumber: d.Seq, EnqueuedSequenceNumber: d.Origin, State: stateNames[d.State], Level: d.Level,
		DeliveryCount: d.Failures, EnqueuedAt: jsonTime(d.EnqueuedAt), LockedUntil: jsonTime(d.LockedUntil), ExpiresAt: jsonTime(d.ExpiresAt),
		Size: m.Size(),
	}}
	if d.State == queue.Retrying {
		s.RetryAt = d.NotBefore.UTC()
	}
	s.fields = fields{
		MessageID: m.MessageIDString(), Subject: m.Subject(), To: m.To(), ReplyTo: m.ReplyTo(),
		ReplyToSessionID: m.ReplyToSessionID(), ContentType: m.ContentType(), PartitionKey: m.PartitionKey(),
	}
	if id := m.CorrelationID(); !id.IsNull() {
		s.CorrelationID = property.Text(id)
	}
	if id, ok := m.SessionID(); ok {
		s.SessionID = &id
	}
	h := m.Header()
	if h.PrioritySet {
		s.Priority = &h.Priority
	}
	s.TimeToLive = entity.Duration(cmp.Or(d.TTL(), h.TTL)) // a dead letter does not expire, and shows what was sent
	if at, ok := m.ScheduledEnqueueTime(); ok {
		s.ScheduledTime = jsonTime(at)
	}
	space := s.showProperties(m, limits.MessageJSON)
	text := func(name string) string {
		v, _ := m.Property(name)
		str, _ := v.Str()
		return str
	}
	s.DeadLetterReason, s.DeadLetterDescription = text(message.PropertyDeadLetterReason), text(message.PropertyDeadLetterDescription)
	if v, ok := m.Annotation(message.AnnotationDeadLetterSource); ok {
		s.DeadLetterSource, _ = v.Str()
	}
	s.showBody(m, limit, space)
	return s
}

// showProperties shows the properties that fit into space, and returns what is left of it.
func (s *shown) showProperties(m *message.Message, space int) int {
	object := []byte{'{'}
	for name, v := range m.Properties() {
		to := object
		if len(to) > 1 {
			to = append(to, ',')
		}
		to, ok := property.Append(to, codec.String(name), space-len(to))
		if ok {
			to, ok = property.Append(append(to, ':'), v, space-len(to))
		}
		if s.PropertiesTruncated = s.PropertiesTruncated || !ok; ok {
			object = to
		}
	}
	s.Properties = append(object, '}')
	return space - len(s.Properties)
}

// showBody shows up to limit bytes of the body, or an AMQP value if it is not
// longer and its JSON is not longer than space.
func (s *shown) showBody(m *message.Message, limit, space int) {
	if body, ok := dataOf(m); ok {
		if s.Truncated = len(body) > limit; s.Truncated {
			body = cutRune(body[:limit])
		}
		s.BodyType, s.Body = encodeBody(body)
		return
	}
	v, ok := m.Value()
	if !ok {
		if v, ok = sequencesOf(m); !ok {
			return
		}
	}
	s.BodyType = BodyJSON
	if s.Truncated = m.BodySize() > limit; s.Truncated {
		return
	}
	value, fits := property.Append(nil, v, space)
	if s.Truncated = !fits; fits {
		s.Body = json.RawMessage(value)
	}
}

// dataOf returns the bytes of a body of data sections, which must not be changed.
func dataOf(m *message.Message) (body []byte, ok bool) {
	for data := range m.Data() {
		if !ok {
			body, ok = data[:len(data):len(data)], true
		} else {
			body = append(body, data...)
		}
	}
	return body, ok
}

// sequencesOf returns the lists of a body of sequences as a list.
func sequencesOf(m *message.Message) (codec.Value, bool) {
	var lists []codec.Value
	for l := range m.Sequences() {
		lists = append(lists, l)
	}
	return codec.List(lists...), lists != nil
}

// encodeBody writes bytes as text if they are some.
func encodeBody(body []byte) (BodyType, any) {
	if utf8.Valid(body) {
		return BodyText, string(body)
	}
	return BodyBase64, base64.StdEncoding.EncodeToString(body)
}

// cutRune removes an incomplete character at the end.
func cutRune(body []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(body); i++ {
		if last := body[len(body)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return body[:len(body)-i]
			}
			break
		}
	}
	return body
}
