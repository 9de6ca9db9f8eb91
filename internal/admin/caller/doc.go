// SPDX-License-Identifier: Apache-2.0

// Package caller finds out who sent an HTTP request and what that allows.
//
// # Promise
//
// A request is taken for what its Authorization header proves, and for nothing
// else: a shared access signature, the name and key of a rule, or a bearer token.
// One without that header is asked of the Authority as anonymous, which only
// development lets in.
//
// Who listens to a request's context with [Observe] is told when it was identified.
//
// # Concurrency
//
// Everything here is a pure function of the request.
//
// # Not here
//
// Which right an operation needs is known by the handler that offers it. Whether a
// browser made the request for another site is checked by the server, before
// anything else.
package caller
