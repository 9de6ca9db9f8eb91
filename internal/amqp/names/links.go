// SPDX-License-Identifier: Apache-2.0

package names

// Filters and properties of links of the vendor.
const (
	SessionFilter = "com.microsoft:session-filter"
	LockedUntil   = "com.microsoft:locked-until-utc"
	MaxBatchSize  = "com.microsoft:max-message-batch-size"
)

// Properties of a receiver's attach that are ours. Clients of other brokers do not
// send them; a broker that is not ours does not send back Granted, by which our clients
// notice that their options were not understood.
const (
	MinLevel        = "triagemq:min-level"
	MaxLevel        = "triagemq:max-level"
	MinClass        = "triagemq:min-class"
	MaxClass        = "triagemq:max-class"
	Sources         = "triagemq:sources"
	SourceSelection = "triagemq:source-selection"
	Recall          = "triagemq:recall"
	DurableLocks    = "triagemq:durable-locks" // locks survive a restart of the broker from the beginning
	TellLevel       = "triagemq:tell-level"    // tell the level and class of each message
	Poll            = "triagemq:poll"          // each credit is drained; the end of that is told by Polled
	Link            = "triagemq:link"          // of a link about recalls: the name of the receiver's
	Granted         = "triagemq:granted"
)

// Polled is a property of a link's state: what there was for its credit has been sent.
const Polled = "triagemq:polled"

// RecallSuffix makes the address of an entity that of its recalls.
const RecallSuffix = "/$recall"

// Filters, properties and capabilities of links to event hubs.
const (
	SelectorFilter     = "apache.org:selector-filter:string"
	ReceiverName       = "com.microsoft:receiver-name"
	Epoch              = "com.microsoft:epoch" // of a receiver
	RuntimeMetric      = "com.microsoft:enable-receiver-runtime-metric"
	IdempotentProducer = "com.microsoft:idempotent-producer"
)

// Batches is a property of a receiver's attach, and of the answer to it: events come in
// batches, as message.EventBatch says, and not each in a delivery of its own.
const Batches = "triagemq:batches"
