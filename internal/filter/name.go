// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strings"

	"github.com/triagemq/triagemq/internal/filter/value"
)

// SystemName is one of the properties under sys.
type SystemName uint8

// The system properties. The zero SystemName is none: a user property.
const (
	NotSystem SystemName = iota
	MessageID
	CorrelationID
	ContentType
	Subject // sys.Label, by its newer name
	To
	ReplyTo
	SessionID
	ReplyToSessionID
	PartitionKey
	ViaPartitionKey
	TimeToLive
	ScheduledEnqueueTimeUTC
	ForcePersistence
	// From here on, only the broker writes.
	ExpiresAtUTC
	EnqueuedTimeUTC
	SequenceNumber
	EnqueuedSequenceNumber
	DeliveryCount
	LockedUntilUTC
	LockToken
	State
	Size
	DeadLetterSource
	systemNames // how many there are
)

// systemSpelling is the canonical spelling of each system property.
var systemSpelling = [systemNames]string{
	MessageID: "MessageId", CorrelationID: "CorrelationId", ContentType: "ContentType",
	Subject: "Label", To: "To", ReplyTo: "ReplyTo", SessionID: "SessionId",
	ReplyToSessionID: "ReplyToSessionId", PartitionKey: "PartitionKey",
	ViaPartitionKey: "ViaPartitionKey", TimeToLive: "TimeToLive",
	ScheduledEnqueueTimeUTC: "ScheduledEnqueueTimeUtc", ForcePersistence: "ForcePersistence",
	ExpiresAtUTC: "ExpiresAtUtc", EnqueuedTimeUTC: "EnqueuedTimeUtc",
	SequenceNumber: "SequenceNumber", EnqueuedSequenceNumber: "EnqueuedSequenceNumber",
	DeliveryCount: "DeliveryCount", LockedUntilUTC: "LockedUntilUtc", LockToken: "LockToken",
	State: "State", Size: "Size", DeadLetterSource: "DeadLetterSource",
}

// String returns the property as expressions spell it, without the scope.
func (n SystemName) String() string { return systemSpelling[n] }

// Settable reports whether a sender, and so an action, may set it.
func (n SystemName) Settable() bool { return n != NotSystem && n < ExpiresAtUTC }

// kind is the type that an action converts to when it sets n.
func (n SystemName) kind() value.Kind {
	switch n {
	case TimeToLive:
		return value.Duration
	case ScheduledEnqueueTimeUTC:
		return value.Time
	case ForcePersistence:
		return value.Bool
	default:
		return value.String
	}
}

// systemName finds a system property by its name in any case.
func systemName(s string) (SystemName, bool) {
	if strings.EqualFold(s, "Subject") {
		return Subject, true
	}
	for n := MessageID; n < systemNames; n++ {
		if strings.EqualFold(s, systemSpelling[n]) {
			return n, true
		}
	}
	return NotSystem, false
}

// Name is a property that an expression uses: a system property, or a user
// property when System is NotSystem.
type Name struct {
	System SystemName
	User   string
}

// String returns the name as an expression spells it.
func (n Name) String() string {
	if n.System != NotSystem {
		return "sys." + n.System.String()
	}
	return quoteName(n.User)
}

// same reports whether two names mean one property: case does not count.
func (n Name) same(m Name) bool {
	return n.System == m.System && strings.EqualFold(n.User, m.User)
}

// scoped splits the argument of p() into scope and name.
func scoped(text string) (Name, bool) {
	scope, rest, found := strings.Cut(text, ".")
	switch {
	case found && strings.EqualFold(scope, "sys"):
		n, ok := systemName(rest)
		return Name{System: n}, ok
	case found && strings.EqualFold(scope, "user"):
		return Name{User: rest}, true
	default:
		return Name{User: text}, true
	}
}

// quoteName writes a user property so that it reads as the same name again.
func quoteName(s string) string {
	if isPlainName(s) {
		return s
	}
	return "[" + strings.ReplaceAll(s, "]", "]]") + "]"
}
