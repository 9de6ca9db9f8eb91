// SPDX-License-Identifier: Apache-2.0

// Package budget bounds the memory that the process uses for its peers.
//
// # Promise
//
// Memory is charged to an [Account] before it is allocated, and released when
// it is freed. Accounts form a tree: what is charged to one is charged to all
// above it, up to the account of the process, and no account is ever charged
// with more than its limit. There is one exception: an empty account accepts a
// single charge of any size. Otherwise a request larger than the limit could
// never be done.
//
// A charge for which there is no space waits for it. Waiting charges are served
// in order of arrival, so that a large charge is not starved by small ones.
// Only charges that are blocked by another account are passed over. While a
// charge waits for space in an account, later charges get none of it.
//
// [Account.Charge] is for memory that is allocated already and cannot be
// rejected. It may exceed the limit; later charges find less space.
// [Account.TakeBeyond] is for short-lived memory, such as a delivery that is
// written or whose peer is disconnected. It may use an eighth beyond the limit,
// so that it continues when long-lived memory has used up an account. An
// account can be moved below another one, with all that is charged to it: a
// connection is moved this way when it logs in. A [Counter] is for frequent
// charges; it charges its account in pieces.
//
// [Process] is the trees of a broker. That for messages that are not on disk yet does not
// wait for the process.
//
// # Concurrency
//
// All methods may be called from any goroutine. A tree has one lock, which is
// held for a few comparisons. Functions that are called when space is available
// are called without it, from the goroutine that released, and must not block.
//
// # Not here
//
// What is charged, and how much: the code that allocates the memory decides
// that.
package budget
