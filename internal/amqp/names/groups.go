// SPDX-License-Identifier: Apache-2.0

package names

// Properties of a receiver's attach to a consumer group of a hub, by which a process
// becomes a member of it. The answer repeats Member.
const (
	Member     = "triagemq:member" // its ID
	MemberRun  = "triagemq:run"    // an ID of the process: a new one after each start
	MemberBack = "triagemq:back"   // true: the run has joined before
	MemberName = "triagemq:name"   // for people
	MemberKeep = "triagemq:keep"   // how long its partitions are kept for it, in milliseconds
)

// Operations of $management about a consumer group of a hub. They are ours.
const (
	GroupReport        = "triagemq:group-report"
	GroupCheckpoint    = "triagemq:group-checkpoint"
	GroupRelease       = "triagemq:group-release"
	GroupLeave         = "triagemq:group-leave"
	GroupRewind        = "triagemq:group-rewind"
	GroupPause         = "triagemq:group-pause"
	GroupRead          = "triagemq:group-read"
	GroupClaim         = "triagemq:group-claim"
	GroupOwnership     = "triagemq:group-ownership"
	GroupSetCheckpoint = "triagemq:group-set-checkpoint"
)

// Keys of assignments, and of these requests and replies. Arrays of one map have the same
// length: the elements at one index belong together.
const (
	GroupName       = "group"
	GroupMember     = "member"
	GroupRun        = "run"        // of the member
	GroupPartition  = "partition"  // -1 is all of them
	GroupPartitions = "partitions" // ints
	GroupEpoch      = "epoch"
	GroupEpochs     = "epochs" // longs

	AssignmentVersion = "version"         // ulong
	AssignmentCount   = "partition-count" // int: how many partitions the hub has
	GroupCheckpoints  = "checkpoints"     // longs; -1 is none, -2 before the first event
	AssignmentRevoke  = "revoke-in"       // ints: milliseconds; -1 is never

	GroupHandled = "handled" // longs: numbers of events
	GroupBusy    = "busy"    // longs: nanoseconds
	GroupBytes   = "bytes"   // longs
	GroupSkipped = "skipped" // longs: events that were gone when their turn came

	GroupNumbers  = "sequence-numbers" // longs
	GroupTimes    = "times"            // timestamps
	GroupRefused  = "refused"          // ints: indexes of the request
	GroupReasons  = "reasons"          // strings: a condition for each that is refused
	GroupCoolDown = "cool-down"        // milliseconds
	GroupUntil    = "until"            // timestamp; null or absent: it is over

	GroupNumber   = "sequence-number" // of the first event to read again
	GroupTime     = "time"            // timestamp: of the first event to read again
	GroupEarliest = "earliest"        // true: from the oldest event
	GroupLatest   = "latest"          // true: from the next event

	GroupOwners   = "owners"   // strings
	GroupETags    = "etags"    // strings; "" if there is no owner yet
	GroupModified = "modified" // timestamps
)

// Error conditions of consumer groups that are ours.
const (
	Fenced        = "triagemq:fenced"         // the epoch is not the current one
	Backwards     = "triagemq:backwards"      // a checkpoint behind the one that is there
	UnknownMember = "triagemq:unknown-member" // it has not joined, or is forgotten
	Coordinated   = "triagemq:coordinated"    // claims in a group that has members
)
