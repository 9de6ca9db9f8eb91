// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the rules of the house that a test can check: which room
// may import which, that each package says what it is, that the state machines
// know no clock, that contexts come from main, that tests sleep in bubbles only.
//
// The tests read the source with the go command and go/parser. A rule that fails
// is a decision to take, with a line in ARCHITECTURE.md in the same commit, not an
// error to silence.
package archtest
