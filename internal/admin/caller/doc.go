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
// In development, where the key is known to every page on the web, a request that
// a browser made for another site is refused, and so is one that came by a name
// other than this machine's: a page cannot use its reader's own machine to reach
// the broker there.
//
// # Concurrency
//
// Everything here is a pure function of the request.
//
// # Not here
//
// Which right an operation needs is known by the handler that offers it.
package caller
