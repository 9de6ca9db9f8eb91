// SPDX-License-Identifier: Apache-2.0

package names

// Nodes that take requests.
const (
	CBS              = "$cbs"
	Management       = "$management" // of the namespace
	ManagementSuffix = "/" + Management
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

// RetryAfter is how long nobody gets a message that is abandoned, in milliseconds: an annotation
// of the state modified, or a field of UpdateDisposition. Only our own broker knows it.
const RetryAfter = "triagemq:retry-after"

// SaveState is an operation of $management that is ours: it keeps a state beside a locked
// message, and renews the lock durably.
const SaveState = "triagemq:save-state"

// What SaveState is told, and what RenewLock may be.
const (
	SavedToken   = "lock-token"
	SavedState   = "state"            // binary
	SavedUntil   = "expiration"       // in the reply: when the lock ends
	DurableRenew = "triagemq:durable" // the lock survives a restart of the broker
)

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

// Read is the operation of $management that tells about an event hub, or about one of its
// partitions. It is a word of no vendor.
const Read = "READ"

// What Read is asked about, and what it answers beside LastSequenceNumber and the like.
const (
	ReadName      = "name"
	ReadType      = "type"
	ReadPartition = "partition"
	TypeHub       = "com.microsoft:eventhub"
	TypePartition = "com.microsoft:partition"

	CreatedAt           = "created_at"
	PartitionCount      = "partition_count"
	PartitionIDs        = "partition_ids"
	GeoReplication      = "georeplication_factor"
	BeginSequenceNumber = "begin_sequence_number"
	IsPartitionEmpty    = "is_partition_empty"
)

// AnnouncePool is an operation of $management that is ours: a process of a worker pool
// tells what it does, and gets its orders.
const AnnouncePool = "triagemq:announce-pool"

// What AnnouncePool tells.
const (
	PoolName         = "name"
	PoolInstance     = "instance" // an ID of the process' own choice
	PoolHost         = "host"
	PoolProcess      = "process"
	PoolSources      = "sources"
	PoolSlots        = "slots" // also in the reply
	PoolBusy         = "busy"
	PoolSuspended    = "suspended"
	PoolRetrying     = "retrying"
	PoolPaused       = "paused" // also in the reply
	PoolIdle         = "idle"
	PoolBackground   = "background"
	PoolBeside       = "beside" // queues whose pools it leaves the machine, besides those at its sources
	PoolLeaving      = "leaving"
	PoolCompleted    = "completed"
	PoolFailed       = "failed"
	PoolDeadLettered = "dead-lettered"
	PoolPreempted    = "preempted"

	// The orders that the process obeys, of which the broker may know nothing any more.
	PoolOrderedPause = "ordered-pause"
	PoolOrderedSlots = "ordered-slots"
	PoolRevision     = "revision" // also in the reply
	PoolSeal         = "seal"     // also in the reply: that the broker has given them
)

// What the reply to AnnouncePool tells besides.
const (
	PoolKnown     = "known" // the next three were measured
	PoolDemand    = "demand"
	PoolWaiting   = "waiting"
	PoolOldest    = "oldest" // milliseconds
	PoolSpare     = "spare"
	PoolInstances = "instances"
)
