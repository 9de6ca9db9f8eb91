// SPDX-License-Identifier: Apache-2.0

// Package interop drives the real broker binary with the unmodified Azure Service
// Bus SDK for Go.
//
// # Promise
//
// Each test is one thing that users of the SDK do. It passes against our broker
// for the reason that it would pass against the service.
//
// # Assumptions
//
// The go command can build the broker, and loopback sockets work. The module is
// a nested one so that users of the broker's own module do not inherit the SDK.
//
// # Not here
//
// Other SDKs and plain AMQP clients: ../js and ../python.
package interop
