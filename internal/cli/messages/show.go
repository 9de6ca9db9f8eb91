// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/cli"
)

// ShownMessage is a message as programs are shown it, in the words of the HTTP
// interface.
type ShownMessage struct {
	SequenceNumber        client.SeqNo   `json:"sequenceNumber"`
	State                 string         `json:"state,omitzero"`  // ready, locked, deferred, scheduled or retrying; of a peek
	Level                 *uint8         `json:"level,omitempty"` // by which the queue serves it
	Class                 string         `json:"class,omitzero"`  // of the queue's policy
	MessageID             string         `json:"messageId,omitzero"`
	CorrelationID         string         `json:"correlationId,omitzero"`
	SessionID             string         `json:"sessionId,omitzero"`
	Subject               string         `json:"subject,omitzero"`
	ContentType           string         `json:"contentType,omitzero"`
	To                    string         `json:"to,omitzero"`
	ReplyTo               string         `json:"replyTo,omitzero"`
	Priority              any            `json:"priority,omitempty"` // as it was sent: a level or a name
	TimeToLive            string         `json:"timeToLive,omitzero"`
	EnqueuedAt            time.Time      `json:"enqueuedAt,omitzero"`
	LockedUntil           time.Time      `json:"lockedUntil,omitzero"`
	RetryAt               time.Time      `json:"retryAt,omitzero"`
	ScheduledEnqueueTime  time.Time      `json:"scheduledEnqueueTime,omitzero"`
	DeliveryCount         uint32         `json:"deliveryCount"`
	DeadLetterReason      string         `json:"deadLetterReason,omitzero"`
	DeadLetterDescription string         `json:"deadLetterDescription,omitzero"`
	DeadLetterSource      string         `json:"deadLetterSource,omitzero"`
	Properties            map[string]any `json:"properties"`
	Body                  any            `json:"body,omitempty"`
	BodyType              string         `json:"bodyType,omitzero"` // text, base64 or json
	Truncated             bool           `json:"truncated,omitzero"`
}

// present turns a message of the client into what is shown.
func present(m *client.Received) ShownMessage {
	s := ShownMessage{
		SequenceNumber: m.SeqNo, MessageID: m.ID, CorrelationID: m.CorrelationID, SessionID: m.Session,
		Subject: m.Subject, ContentType: m.ContentType, To: m.To, ReplyTo: m.ReplyTo,
		EnqueuedAt: m.Enqueued, LockedUntil: m.LockedUntil, RetryAt: m.RetryAt, ScheduledEnqueueTime: m.ScheduleAt, DeliveryCount: m.DeliveryCount,
		DeadLetterReason: m.DeadLetterReason, DeadLetterDescription: m.DeadLetterDescription, DeadLetterSource: m.DeadLetterSource,
		Properties: m.Properties, Level: m.Level, Class: m.Class,
	}
	if m.Priority != "" {
		s.Priority = string(m.Priority)
	}
	if m.TTL > 0 {
		s.TimeToLive = m.TTL.String()
	}
	if s.Properties == nil {
		s.Properties = map[string]any{}
	}
	switch {
	case m.Value != nil:
		s.Body, s.BodyType = m.Value, "json"
	case utf8.Valid(m.Body):
		s.Body, s.BodyType = string(m.Body), "text"
	default:
		s.Body, s.BodyType = base64.StdEncoding.EncodeToString(m.Body), "base64"
	}
	return s
}

// bodyText is the body for people.
func (s ShownMessage) bodyText() string {
	if s.Body == nil {
		return ""
	}
	return fmt.Sprint(s.Body)
}

// urgency is the level or name that decides how soon it is served.
func (s ShownMessage) urgency() string {
	switch {
	case s.Level != nil && s.Class != "":
		return fmt.Sprintf("%s (level %d)", s.Class, *s.Level)
	case s.Level != nil:
		return fmt.Sprintf("level %d", *s.Level)
	case s.Priority != nil:
		return fmt.Sprint(s.Priority)
	}
	return "normal"
}

// heading is what there is to know about a message in a line.
func (s ShownMessage) heading() string {
	parts := []string{fmt.Sprintf("#%d", s.SequenceNumber), cli.OneLine(s.urgency()), cli.TimeText(s.EnqueuedAt)}
	for _, p := range []struct{ name, value string }{
		{"id", s.MessageID}, {"session", s.SessionID}, {"subject", s.Subject}, {"correlation", s.CorrelationID},
		{"dead letter", s.DeadLetterReason}, {"because", s.DeadLetterDescription}, {"from", s.DeadLetterSource},
	} {
		if p.value != "" {
			parts = append(parts, p.name+" "+cli.OneLine(p.value))
		}
	}
	if s.DeliveryCount > 0 {
		parts = append(parts, "failed "+cli.Count(int(s.DeliveryCount), "time"))
	}
	if !s.RetryAt.IsZero() {
		parts = append(parts, "again at "+cli.TimeText(s.RetryAt))
	}
	return strings.Join(parts, "  ")
}

// print writes a message for people: a heading, its properties, its body.
func (s ShownMessage) print(w io.Writer) {
	fmt.Fprintln(w, s.heading())
	s.printContent(w)
}

// printContent writes the properties and the body.
func (s ShownMessage) printContent(w io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if name != "DeadLetterReason" && name != "DeadLetterErrorDescription" { // told above
			fmt.Fprintf(w, "    %s = %s\n", cli.OneLine(name), cli.OneLine(fmt.Sprint(s.Properties[name])))
		}
	}
	for line := range strings.Lines(s.bodyText()) {
		fmt.Fprintln(w, "  "+cli.OneLine(strings.TrimRight(line, "\r\n")))
	}
}
