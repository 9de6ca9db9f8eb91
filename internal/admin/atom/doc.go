// SPDX-License-Identifier: Apache-2.0

// Package atom is the administration API of Service Bus: ATOM entries and feeds
// in XML, as ServiceBusAdministrationClient and its cousins in other languages
// speak it.
//
// # Promise
//
// The unmodified clients for Go and JavaScript create, read, list, change and
// delete queues, topics, subscriptions and rules, and get the typed errors they
// know. Requests are read by namespace, whatever their prefixes and order;
// replies are written with the prefixes and in the order that the service has,
// because one client looks for them literally.
//
// A request is at most 1 MiB of XML, of bounded depth and size, without a
// document type, so that nothing in it can grow while it is read.
//
// # Deviations
//
// The service words some errors in the reason phrase of HTTP; here they stand in
// the Detail of the body, which clients print as well. Whole numbers that fit 32
// bits are written as int, whatever they were sent as, because neither client
// reads a long.
//
// # Concurrency
//
// The handler has no state of its own.
//
// # Not here
//
// What may be created and changed is decided by entity and broker.
package atom
