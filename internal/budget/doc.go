// SPDX-License-Identifier: Apache-2.0

// Package budget bounds the memory that peers can make the process hold.
//
// # Promise
//
// Memory is charged to an [Account] before it is taken, and released when it is
// given back. Accounts form a tree: what is charged to one is charged to all above
// it, up to the account of the process, and no account is ever charged with more
// than its limit. There is one exception: an account that is empty takes a single
// charge of any size, or what is larger than the limit could never be done.
//
// Who finds no room waits for it. Room goes to those who wait in the order they
// came, so that a large charge is not overtaken for ever by small ones; only those
// that are held up by an account of their own are passed over. While somebody waits
// for room in an account, nobody else gets any of it.
//
// [Account.Charge] is for what cannot be refused, because it is there already: it may
// go beyond the limit, and those who ask find so much less room. [Account.TakeBeyond] is
// for what soon ends by itself, such as a delivery that is written or whose peer is cut
// off: it may use an eighth beyond the limit, so that it goes on when an account is used up
// by what stays. An account can be
// moved below another one, with all that is charged to it: that is how a connection
// that logs in stops being an unauthenticated peer. Who counts often does it with a [Counter], which
// takes from its account in pieces.
//
// [Process] is the tree of a broker. Its part for messages that are not on disk yet does not
// wait for the process.
//
// # Concurrency
//
// All methods may be called from any goroutine. A tree has one lock, which is held
// for a few comparisons. Functions that are called when room was found are called
// without it, from the goroutine that released, and must return at once.
//
// # Not here
//
// What is charged, and how much of it a thing costs: whoever takes the memory knows.
package budget
