// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/admin/property"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

const headerProperties = "BrokerProperties"

// brokerProperties are the fields of a message that the broker knows, as the
// header of that name carries them. The names are on the wire and never change.
type brokerProperties struct {
	MessageID        string  `json:"MessageId,omitzero"`
	CorrelationID    string  `json:"CorrelationId,omitzero"`
	SessionID        *string `json:"SessionId,omitempty"`
	Label            string  `json:"Label,omitzero"`
	To               string  `json:"To,omitzero"`
	ReplyTo          string  `json:"ReplyTo,omitzero"`
	ReplyToSessionID string  `json:"ReplyToSessionId,omitzero"`
	ContentType      string  `json:"ContentType,omitzero"` // in batches
	PartitionKey     string  `json:"PartitionKey,omitzero"`
	ViaPartitionKey  string  `json:"ViaPartitionKey,omitzero"`
	TimeToLive       float64 `json:"TimeToLive,omitzero"` // in seconds
	// TimeToLiveTimeSpan is the same as d.hh:mm:ss.
	TimeToLiveTimeSpan string `json:"TimeToLiveTimeSpan,omitzero"`
	Scheduled          string `json:"ScheduledEnqueueTimeUtc,omitzero"` // RFC 1123 or 3339

	// What only received messages have.
	SequenceNumber         queue.SeqNo `json:"SequenceNumber,omitzero"`
	EnqueuedSequenceNumber queue.SeqNo `json:"EnqueuedSequenceNumber,omitzero"`
	EnqueuedTime           string      `json:"EnqueuedTimeUtc,omitzero"`
	ExpiresAt              string      `json:"ExpiresAtUtc,omitzero"`
	DeliveryCount          uint32      `json:"DeliveryCount,omitzero"` // this delivery included
	LockToken              string      `json:"LockToken,omitzero"`
	LockedUntil            string      `json:"LockedUntilUtc,omitzero"`
	State                  string      `json:"State,omitzero"`
	DeadLetterSource       string      `json:"DeadLetterSource,omitzero"`
}

// fill puts the fields into a message.
func (p *brokerProperties) fill(d *message.Draft) error {
	if p.MessageID != "" {
		d.MessageID = codec.String(p.MessageID)
	}
	if p.CorrelationID != "" {
		d.CorrelationID = codec.String(p.CorrelationID)
	}
	if p.SessionID != nil {
		d.SessionID, d.HasSession = *p.SessionID, true
	}
	d.Subject, d.To, d.ReplyTo, d.ReplyToSessionID = p.Label, p.To, p.ReplyTo, p.ReplyToSessionID
	if p.ContentType != "" {
		d.ContentType = p.ContentType
	}
	annotate := func(name string, v codec.Value) {
		d.Annotations = append(d.Annotations, message.Pair{Name: name, Value: v})
	}
	if p.PartitionKey != "" {
		annotate(message.AnnotationPartitionKey, codec.String(p.PartitionKey))
	}
	if p.ViaPartitionKey != "" {
		annotate(message.AnnotationViaPartitionKey, codec.String(p.ViaPartitionKey))
	}
	if p.Scheduled != "" {
		at, err := parseTime(p.Scheduled)
		if err != nil {
			return problem.Bad("ScheduledEnqueueTimeUtc is %q, not a time such as %s.", p.Scheduled, http.TimeFormat)
		}
		annotate(message.AnnotationScheduledEnqueueTime, codec.Timestamp(at))
	}
	ttl, err := p.ttl()
	if err != nil {
		return err
	}
	setTTL(d, ttl)
	return nil
}

// maxHeaderTTL is the longest time to live that fits into the header; a longer
// one is written as creation time and expiry.
const maxHeaderTTL = (1<<32 - 1) * time.Millisecond

func setTTL(d *message.Draft, ttl time.Duration) {
	if ttl <= maxHeaderTTL {
		d.TTL = ttl
		return
	}
	d.CreationTime = time.Now()
	d.AbsoluteExpiry = d.CreationTime.Add(ttl)
}

// timeSpan is how .NET writes a duration.
var timeSpan = regexp.MustCompile(`^(?:(\d{1,5})\.)?(\d{1,2}):(\d{2}):(\d{2})(?:\.(\d{1,7}))?$`)

// forever is beyond any time to live that makes a difference, in seconds.
const forever = 100 * 365 * 24 * 3600

func (p *brokerProperties) ttl() (time.Duration, error) {
	seconds := p.TimeToLive
	if p.TimeToLiveTimeSpan != "" {
		m := timeSpan.FindStringSubmatch(p.TimeToLiveTimeSpan)
		if m == nil {
			return 0, problem.Bad("TimeToLiveTimeSpan is %q, not d.hh:mm:ss.", p.TimeToLiveTimeSpan)
		}
		var n [4]float64
		for i := range n {
			n[i], _ = strconv.ParseFloat("0"+m[i+1], 64) // digits, or none
		}
		fraction, _ := strconv.ParseFloat("0."+m[5]+"0", 64)
		seconds = n[0]*86400 + n[1]*3600 + n[2]*60 + n[3] + fraction
	}
	switch {
	case seconds < 0 || seconds != seconds:
		return 0, problem.Bad("TimeToLive is %v; it must not be negative.", seconds)
	case seconds > forever:
		return 0, nil // as long as the queue lets it
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

func parseTime(text string) (time.Time, error) {
	if t, err := http.ParseTime(text); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	return time.Parse("2006-01-02T15:04:05.999999999", text) // .NET without a zone: UTC
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(http.TimeFormat)
}

// received returns the fields of a message that was received.
func received(d *broker.Delivery, m *message.Message) brokerProperties {
	p := brokerProperties{
		MessageID: m.MessageIDString(), Label: m.Subject(), To: m.To(), ReplyTo: m.ReplyTo(),
		ReplyToSessionID: m.ReplyToSessionID(), PartitionKey: m.PartitionKey(),
		SequenceNumber: d.Seq, EnqueuedSequenceNumber: d.Origin, EnqueuedTime: formatTime(d.EnqueuedAt),
		ExpiresAt: formatTime(d.ExpiresAt), DeliveryCount: d.Failures + 1, LockedUntil: formatTime(d.LockedUntil), State: "Active",
	}
	if id := m.CorrelationID(); !id.IsNull() {
		p.CorrelationID = property.Text(id)
	}
	if id, ok := m.SessionID(); ok {
		p.SessionID = &id
	}
	p.TimeToLive = d.TTL().Seconds()
	if at, ok := m.ScheduledEnqueueTime(); ok {
		p.Scheduled = formatTime(at)
	}
	if d.Token != (queue.Token{}) {
		p.LockToken = property.UUID(d.Token.Bytes())
	}
	if v, ok := m.Annotation(message.AnnotationDeadLetterSource); ok {
		p.DeadLetterSource, _ = v.Str()
	}
	return p
}
