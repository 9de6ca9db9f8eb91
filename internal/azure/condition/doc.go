// SPDX-License-Identifier: Apache-2.0

// Package condition says how an error is reported to a peer.
//
// A [Table] turns a Go error into an AMQP condition, a status for replies to requests
// and a text. Service Bus and its clients fix all three: SDKs decide by them whether to
// try again, and some compare texts word for word. The table has the errors that every
// personality meets (names, rights, sizes, encodings, the end of a context); each
// personality adds its own.
//
// Texts for peers name no packages and no files. An error that no table has is an
// internal error: its text goes to the log of the caller, not to the peer.
package condition
