// SPDX-License-Identifier: Apache-2.0

// Package program runs a program for each message of a pool.
//
//	pool := worker.Pool{Client: c, Source: "tasks", Handler: program.Handler{Command: []string{"./resize.sh"}}}
//
// # What the program gets
//
// The body is its standard input. Its environment is that of this process, then
// [Handler.Env], then what the message says about itself:
//
//	TRIAGEMQ_MESSAGE_ID       identifier
//	TRIAGEMQ_SEQUENCE_NUMBER  number in its queue
//	TRIAGEMQ_SUBJECT          subject, also called label
//	TRIAGEMQ_PRIORITY         what the sender asked for
//	TRIAGEMQ_LEVEL            level by which it was served
//	TRIAGEMQ_CLASS            class of the queue's policy
//	TRIAGEMQ_DELIVERY_COUNT   number of earlier deliveries that failed
//	TRIAGEMQ_ENQUEUED         when it came, as in 2026-11-16T19:00:00.5Z
//	TRIAGEMQ_SESSION          session
//	TRIAGEMQ_CORRELATION_ID   identifier of the message that it belongs to
//	TRIAGEMQ_CONTENT_TYPE     content type
//	TRIAGEMQ_REPLY_TO         where a reply goes
//	TRIAGEMQ_SOURCE           queue or subscription it came from
//	TRIAGEMQ_POOL             name of the pool
//	TRIAGEMQ_PROPERTY_<NAME>  application property
//	TRIAGEMQ_OMITTED          number of values that an environment cannot hold
//
// What the message does not have is not set. NAME is the property's name in capitals,
// with "_" for all but ASCII letters and digits. If several have the same NAME, that
// whose own name is first in byte order is set, and the others count as omitted. So
// do values with a zero byte, those above 32 KiB, and all beyond 256 KiB together.
// Senders choose values but no names outside TRIAGEMQ_PROPERTY_.
//
// # What the program answers
//
// Its exit code decides what becomes of the message:
//
//	0      complete
//	65     dead letter: the message is wrong and no retry can help (EX_DATAERR)
//	75     a passing fault: try again after the pool's Retry (EX_TEMPFAIL)
//	other  failed: the same, and logged as an error; so is the end by a signal
//
// Each retry counts as a delivery, so the queue's maxDeliveryCount ends a series of
// them with a dead letter.
//
// A program that cannot be started is refused before the pool takes its first message; see
// [Handler.Check]. If it cannot be started later, its message is handed back and counts as
// no failure, and the pool tries again after a pause; see [worker.ErrUnavailable].
//
// # Processes
//
// The program leads a process group of its own. To suspend the task the group gets
// SIGSTOP, and SIGCONT to go on: its memory stays. When the handler's context ends,
// the group gets SIGTERM, and SIGKILL after [Handler.KillAfter]; whatever the program
// answers then, the context's cause decides. When the program has ended, the rest of
// the group is killed, so nothing stays behind of a program that forks and exits.
// On Linux the program is also killed when this process ends without a stop.
//
// A process that begins a session of its own (setsid) leaves the group and is neither
// suspended nor ended. In a container, have an init reap what the program leaves.
//
// # Not here
//
// Only Unix has process groups. Elsewhere [Handler.Check] and Handle return an error.
package program
