// SPDX-License-Identifier: Apache-2.0

// Package rest is the simple way to send and receive over HTTP that Service Bus
// offers: a POST for each message, a POST or DELETE to get one, and one more
// request to settle it.
//
//	POST   /{entity}/messages                 send one message, or a batch      201
//	POST   /{entity}/messages/head            receive under a lock              201, 204 none
//	DELETE /{entity}/messages/head            receive for good                  200, 204 none
//	DELETE /{entity}/messages/{id}/{lock}     complete                          200
//	PUT    /{entity}/messages/{id}/{lock}     unlock: the delivery has failed   200
//	POST   /{entity}/messages/{id}/{lock}     renew the lock                    200
//
// The broker's properties travel as JSON in the header BrokerProperties, the
// message's own as headers.
//
// # Promise
//
// A message that was answered with 201 is durable. One received under a lock by a
// client that has left goes back to its place, uncounted. Statuses are those the
// service documents: 410 for an entity that is not there, 404 for a lock that is
// not.
//
// What a sender wrote stays data: no property becomes a header that a browser, a
// cache or a proxy obeys, and a body comes as an attachment, whatever its type.
//
// # Concurrency
//
// A request that waits for a message holds one receiver and nothing else.
//
// # Not here
//
// Sessions: the service does not offer them over HTTP either.
package rest
