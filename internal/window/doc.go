// SPDX-License-Identifier: Apache-2.0

// Package window answers when a pool may work: whether a moment is inside the given
// windows of time, and when that changes next.
//
// A window is days, hours and a time zone. It has days or hours; the rest may be left out:
//
//	Mon-Fri 19:00-07:00 Europe/Berlin
//	Sat,Sun
//	22:00-06:00
//	daily 09:00-17:00 UTC
//
// An end that is not after the begin is on the next day; the days are those of the
// begin. The begin is inside, the end is not. Several windows are a union.
//
// # Daylight saving
//
// A window is open while a clock on a wall of its zone shows a time inside it. So a
// window that begins in the hour that a change leaves out begins at the change, one
// that is wholly in it does not occur, and an hour that occurs twice is inside twice.
//
// The package reads no clock: time is an argument.
package window
