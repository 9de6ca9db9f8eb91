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
)

// Application properties that say why a message is in a dead-letter queue.
const (
	DeadLetterReason      = "DeadLetterReason"
	DeadLetterDescription = "DeadLetterErrorDescription"
)
