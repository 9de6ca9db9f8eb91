// SPDX-License-Identifier: Apache-2.0

// Package caller authenticates and authorizes HTTP requests.
//
// # Promise
//
// A request has only the rights that its Authorization header proves: by a
// shared access signature, the name and key of a rule, or a bearer token. A
// request without that header is anonymous; only the Authority of development
// accepts it.
//
// The function that was set with [Observe] in a request's context is called
// when the request is authenticated.
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
