// SPDX-License-Identifier: Apache-2.0

// Package clock is the time by which the broker decides about messages: when a
// lock, a life or a wait is over.
//
// # Why
//
// The wall clock of a machine is set, by people and by programs. Set back by an
// hour, it would stop every lock, schedule and time to live for an hour; set
// forward and back, it would expire messages that are a second old. A monotonic
// clock is never set, but it is useless for scheduled messages, and it stops
// while the machine sleeps.
//
// # Promise
//
// A [Steady] starts at the wall clock and continues with the monotonic one. It
// is continuously corrected toward the wall clock:
//
//   - It never goes back and never stops. As long as it is ahead of the wall clock
//     it runs slower, by a tenth. If the wall clock was set back by an hour, the two
//     agree again after ten hours; meanwhile a lock of 30 s lasts 33 s, and
//     scheduled messages are enqueued up to an hour early.
//   - As long as it is behind the wall clock it runs faster, by a tenth. If that
//     was not enough after ten seconds, it steps to the wall clock at once: the
//     machine has slept, or its clock was wrong and is now right. In both cases
//     schedules are due and clients compare the end of their locks with a clock
//     that is right. A wall clock that is wrong for a moment changes nothing.
//   - So, without another change of the wall clock, a difference of d disappears
//     after 10 × d if the wall clock is behind, and after ten seconds if it is
//     ahead.
//
// Times are stored, and a restarted process must not start before them, or a
// wall clock that was set back would stop everything again: [Clock.AtLeast]
// makes a clock start later. It does not follow times that are more than a day
// ahead. Those are the result of a wrong clock in the past, and correcting them
// would take too long.
//
// # Concurrency
//
// A Steady is a plain value of one goroutine, fed with readings: simulators have
// one. A [Clock] reads the clocks of the machine; all its methods may be called
// from any goroutine.
//
// # Not here
//
// Deadlines of sockets, idle peers, the expiry of tokens and certificates:
// those use the time of the machine.
package clock
