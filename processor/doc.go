// SPDX-License-Identifier: Apache-2.0

// Package processor reads an event hub with a fleet of instances that share its
// partitions, hand them over without repeating events, and remember how far they came.
//
//	p := processor.Processor{Client: c, Hub: "readings", Handle: handle}
//	err := p.Run(ctx)
//
// # Promise
//
// Every event is handled at least once, and none is skipped in silence: when events are gone
// before they were handled, such as those older than the retention, OnError gets a [GapError],
// and AtGap says whether the partition goes on. Events of one partition are handled in order,
// by one instance and one handler at a time. Checkpoint N means that
// the events up to and including sequence number N are handled; the owner of a partition
// begins after it.
//
// A planned move (an instance joins, leaves or is stopped politely, or a partition is
// released) repeats no event: the old owner finishes its batch, saves its checkpoint and
// releases, and only then the new owner begins. After a crash the events behind the last
// checkpoint come again, and no others. [Partition.Key] lets a handler recognise them.
//
// When a partition is lost, its handler's context ends with [ErrLost] as the cause. On a
// planned move the handler may finish; it is cancelled only when the time for the move is
// over. An owner that was deposed without noticing, such as a process that was suspended,
// cannot move the checkpoint: the broker refuses it.
//
// # Modes
//
// By default the broker coordinates. It knows of an instance before that owns anything,
// moves as few partitions as possible, and gives each grant of a partition a higher
// epoch. Readers and checkpoints with a lower one are refused. A lost connection is
// noticed within a second, an instance that is silent within ten.
//
// With a Store the instances follow the rules of the SDKs for Event Hubs over records in
// that store, so that they can be in one fleet with processors of those SDKs. Package
// processor/blobstore has the store that the SDKs share; [NewBrokerStore] needs no other
// service, and [NewMemoryStore] is for tests and for several instances in one process.
// That algorithm has no hand-over: who takes a partition ends the reader of the owner,
// whose batch in hand is then handled twice. Its checkpoints have no fence.
//
// # Failures
//
// A handler that returns an error or panics is called again with the same events, after a
// pause, up to Attempts times. Then each of the events is tried by itself, and one
// that fails as often goes to the DeadLetter queue, with where it came from in its
// properties. Without such a queue the partition stands still for CoolDown and the event
// is tried again.
//
// A handler that goes on after its context has ended holds its partition in this
// instance: no second handler starts beside it. OnError gets [ErrHandlerStuck], and the
// partition goes to another instance. Run waits for it for Grace and five seconds more. With a
// Timeout the context of a call ends by itself; without one, a handler that never returns keeps
// its partition until that is released by an operator.
//
// # Assumptions
//
// The clocks of the machines may differ: the time of the broker, or of the store, counts.
// Of a store that tells no time, a record is out of date when it has not changed for
// Expiry by the clock of the one who looks.
//
// # Concurrency
//
// One goroutine decides about partitions; each partition has one that fetches and one
// that runs the handler, and a processor two more for news and checkpoints. Run returns
// when all of them have ended, except a handler that is stuck. The methods of a processor
// and of a partition are safe for concurrent use.
package processor
