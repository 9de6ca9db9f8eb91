// SPDX-License-Identifier: Apache-2.0

// Package names has the names that brokers and clients write and compare: conditions of
// errors, annotations, link properties, operations and their keys, addresses. Both our
// broker and our client use it, so that the two cannot differ.
//
// A name is on the wire and never changes. conditions.go has those of AMQP and of the
// vendor, requests.go the operations and the keys of requests and replies, links.go the
// addresses and properties of links, messages.go annotations and properties of messages.
package names
