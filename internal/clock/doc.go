// SPDX-License-Identifier: Apache-2.0

// Package clock is the time by which the broker decides about messages: when a
// lock, a life or a wait is over.
//
// # Why
//
// The wall clock of a machine is set, by people and by programs. Set back by an
// hour, it would freeze every lock, schedule and time to live for an hour; set to
// and fro, it would have messages expire that are a second old. A monotonic clock
// is never set, but nobody can schedule a message by it, and it stands still while
// the machine sleeps.
//
// # Promise
//
// A [Steady] begins with the wall clock and goes on with the monotonic one. It is
// corrected toward the wall clock as it goes along:
//
//   - It never goes back and never stands still: as long as it is ahead of the
//     wall clock it runs slower, by a tenth. A wall clock that was set back by an
//     hour is met after ten hours; a lock of 30 s lasts 33 s meanwhile, and what
//     was scheduled comes up to an hour early.
//   - As long as it is behind the wall clock it runs faster, by a tenth. If that
//     has not been enough after ten seconds, it takes over the wall clock at once:
//     the machine has slept, or its clock was wrong and is now right. In both cases
//     schedules are due and clients compare the end of their locks with a clock
//     that is right. A wall clock that is wrong for a moment changes nothing.
//   - So, without another change of the wall clock, a difference of d is gone after
//     10 × d if the wall clock is behind, and after ten seconds if it is ahead.
//
// Times are stored, and a process that starts again must not begin before them, or
// what the wall clock froze would be frozen once more: [Clock.AtLeast] makes a
// clock begin later. It does not follow times that are more than a day ahead. Those
// are a mistake of the past, which would take longer to correct than it does harm.
//
// # Concurrency
//
// A Steady is a plain value of one goroutine, fed with readings: simulators have
// one. A [Clock] reads the clocks of the machine; all its methods may be called
// from any goroutine.
//
// # Not here
//
// Deadlines of sockets, idle peers, the ends of tokens and certificates: those
// are in the time of the machine.
package clock
