// SPDX-License-Identifier: Apache-2.0

// Package atom is the administration API of Service Bus: ATOM entries and feeds
// in XML, as used by ServiceBusAdministrationClient and its counterparts in
// other languages.
//
// # Promise
//
// The unmodified clients for Go and JavaScript create, read, list, change and
// delete queues, topics, subscriptions and rules, and get the typed errors they
// know. Requests are read by namespace, with any prefixes and in any order;
// replies are written with the prefixes and in the order of the service,
// because one client searches for them literally.
//
// A request is at most 1 MiB of XML, of bounded depth and size, without a
// document type, so that nothing in it can grow while it is read.
//
// Event hubs, their consumer groups and partitions are served as the tools of the
// service ask for them.
//
// # Deviations
//
// The service puts some error texts into the reason phrase of HTTP; here they
// are in the Detail of the body, which clients print as well. Integers that fit
// into 32 bits are written as int, even if they were sent as another type,
// because neither client reads a long. The retention of an event hub is in whole days
// here, rounded up; an update with that number does not change it.
//
// # Concurrency
//
// The handler has no state.
//
// # Not here
//
// What may be created and changed is decided by entity and broker.
package atom
