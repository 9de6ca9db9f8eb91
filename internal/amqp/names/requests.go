// SPDX-License-Identifier: Apache-2.0

package names

// Nodes that take requests.
const (
	CBS              = "$cbs"
	ManagementSuffix = "/$management"
)

// Application properties of requests and replies. Clients differ in which spelling of
// a reply's keys they read.
const (
	Operation      = "operation"
	ServerTimeout  = "com.microsoft:server-timeout"
	AssociatedLink = "associated-link-name" // of the receiver that a request is made for

	StatusCode           = "statusCode"
	StatusCodeDashed     = "status-code"
	StatusText           = "statusDescription"
	StatusTextDashed     = "status-description"
	ErrorCondition       = "errorCondition"
	ErrorConditionDashed = "error-condition"
)

// Requests to $cbs.
const (
	PutToken = "put-token"
	TokenSAS = "servicebus.windows.net:sastoken"
	TokenJWT = "jwt"
)

// Uncounted makes a release of an abandon: the delivery counts as none. It is true as an
// annotation of the state modified, or as a field of UpdateDisposition. Only our own broker
// knows it.
const Uncounted = "triagemq:uncounted"

// Operations of $management.
const (
	RenewLock               = "com.microsoft:renew-lock"
	UpdateDisposition       = "com.microsoft:update-disposition"
	PeekMessage             = "com.microsoft:peek-message"
	ReceiveBySequenceNumber = "com.microsoft:receive-by-sequence-number"
	BatchDeleteMessages     = "com.microsoft:batch-delete-messages"
	ScheduleMessage         = "com.microsoft:schedule-message"
	CancelScheduledMessage  = "com.microsoft:cancel-scheduled-message"
	RenewSessionLock        = "com.microsoft:renew-session-lock"
	GetSessionState         = "com.microsoft:get-session-state"
	SetSessionState         = "com.microsoft:set-session-state"
	GetMessageSessions      = "com.microsoft:get-message-sessions"
	AddRule                 = "com.microsoft:add-rule"
	RemoveRule              = "com.microsoft:remove-rule"
	EnumerateRules          = "com.microsoft:enumerate-rules"
)
