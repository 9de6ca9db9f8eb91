// SPDX-License-Identifier: Apache-2.0

// Package management has the operations of a Service Bus entity's $management node:
// what clients ask for beside their links, such as a peek, the renewal of a lock, the
// state of a session or the rules of a subscription.
//
// Package azure receives a request, checks its sender's rights and sends the reply; here
// the arguments are read, the broker is asked and the body of the reply is made.
// operations.go has the table of operations, and the others what they do: messages.go,
// sessions.go, rules.go and pools.go. values.go has what links use as well.
//
// A session belongs to the receiver that holds its lock. An operation on a session, or on
// messages that may be in one, is served only for the connection that holds it.
//
// The names of operations and arguments, their types and the encoding of rules are those
// of the service. Where a client would break on something else, the comment at that line
// names the client.
package management
