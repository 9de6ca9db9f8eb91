// SPDX-License-Identifier: Apache-2.0

// Package recall chooses which delivery is recalled for a better message.
//
// A consumer may have messages that it has not started. When a message of a higher level
// is ready and no consumer has credit, one of them is recalled: that of the lowest
// level, and of equals the one delivered last, which is the least likely to be started.
//
// When a consumer has credit and no message is ready for it, another may have messages that it
// has not started, at whatever level. Then the delivery that was made last is recalled.
//
// Up to some thousand deliveries are looked at for one message, however many there are and
// however often consumers decline.
//
// It computes only: package queueserver asks the consumer and delivers the message.
//
// # Invariants
//
//  1. No token is recalled twice. So there are never more requests than outstanding
//     deliveries.
//  2. Each ready message has one request at most, and so has each consumer with credit.
//
// # Files
//
//	deliveries.go  outstanding deliveries of a consumer, and the choice among them
//	requests.go    what was recalled, and for which message
package recall
