// SPDX-License-Identifier: Apache-2.0

// Package archtest contains the rules of this repository that a test can check:
// which package may import which, that each package has a comment, that others
// use what a package exports, that the state machines use no clock, that contexts
// are created in main, that tests sleep only inside synctest.Test, that something bounds
// each document that a peer may send and each number that it may name, and that somebody is charged
// for what each kind of record makes durable.
//
// The tests read the source with the go command and go/parser. If a rule fails,
// either change the code or decide to change the rule, with a line in
// ARCHITECTURE.md in the same commit.
package archtest
