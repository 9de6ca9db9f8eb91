// SPDX-License-Identifier: Apache-2.0

package names

// Message annotations that brokers and SDKs agree on.
const (
	AnnotationSequenceNumber         = "x-opt-sequence-number"
	AnnotationEnqueuedTime           = "x-opt-enqueued-time"
	AnnotationLockedUntil            = "x-opt-locked-until"
	AnnotationEnqueuedSequenceNumber = "x-opt-enqueue-sequence-number"
	AnnotationPartitionKey           = "x-opt-partition-key"
	AnnotationViaPartitionKey        = "x-opt-via-partition-key"
	AnnotationScheduledEnqueueTime   = "x-opt-scheduled-enqueue-time"
	AnnotationDeadLetterSource       = "x-opt-deadletter-source"
	AnnotationState                  = "x-opt-message-state"
	AnnotationOffset                 = "x-opt-offset"

	// AnnotationLockToken is a delivery annotation.
	AnnotationLockToken = "x-opt-lock-token"
)

// Message annotations that only our own broker writes.
const (
	AnnotationSource = "x-triage-source"
	AnnotationLevel  = "x-triage-level"
	AnnotationClass  = "x-triage-class"
	// AnnotationObjective is how long messages of the class may wait, in milliseconds.
	AnnotationObjective = "x-triage-objective"
	// AnnotationRetryAt is until when a peeked message that has failed waits.
	AnnotationRetryAt = "x-triage-retry-at"
)

// Application properties by which a worker gives a message back with its checkpoint. Only
// the holder of its lock can set them; the broker removes those of senders.
const (
	PropertyState       = "triagemq-state"       // bytes that SaveState has, too
	PropertyPreemptions = "triagemq-preemptions" // how often the task was preempted
)

// Application properties that say why a message is in a dead-letter queue.
const (
	DeadLetterReason      = "DeadLetterReason"
	DeadLetterDescription = "DeadLetterErrorDescription"
)

// Delivery annotations by which a hub tells the receiver of an event about the last one
// in its partition. The reply to a request about a partition has some of them too.
const (
	LastSequenceNumber = "last_enqueued_sequence_number"
	LastOffset         = "last_enqueued_offset"
	LastEnqueuedTime   = "last_enqueued_time_utc"
	RetrievalTime      = "runtime_info_retrieval_time_utc"
)

// Properties of a link of an idempotent producer, and annotations of its events.
const (
	ProducerID       = "com.microsoft:producer-id"
	ProducerEpoch    = "com.microsoft:producer-epoch"
	ProducerSequence = "com.microsoft:producer-sequence-number"
)
