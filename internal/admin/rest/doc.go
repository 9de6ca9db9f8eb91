// SPDX-License-Identifier: Apache-2.0

// Package rest is the simple way to send and receive over HTTP that Service Bus
// offers: a POST for each message, a POST or DELETE to get one, and one more
// request to settle it.
//
//	POST   /{entity}/messages                 send one message, or a batch      201
//	POST   /{entity}/messages/head            receive under a lock              201, 204 none
//	DELETE /{entity}/messages/head            receive and delete                200, 204 none
//	DELETE /{entity}/messages/{id}/{lock}     complete                          200
//	PUT    /{entity}/messages/{id}/{lock}     unlock: the delivery has failed   200
//	                                          ?retryAfter=60 nobody gets it for a minute
//	POST   /{entity}/messages/{id}/{lock}     renew the lock                    200
//
// The broker's properties travel as JSON in the header BrokerProperties, the
// message's own as headers.
//
// # Promise
//
// A message that was answered with 201 is durable. If the client has
// disconnected, a message that was locked for it is released with its delivery
// count unchanged. Statuses are those the service documents: 410 for an entity
// that does not exist, 404 for a lock that does not.
//
// What a sender wrote stays data: no property becomes a header that a browser,
// a cache or a proxy interprets, and a body of any type is sent as an
// attachment.
//
// # Concurrency
//
// A request that waits for a message uses one receiver and nothing else.
//
// # Not here
//
// Sessions: the service does not offer them over HTTP either.
package rest
