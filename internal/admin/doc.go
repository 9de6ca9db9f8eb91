// SPDX-License-Identifier: Apache-2.0

// Package admin is the HTTP side of the broker: the JSON API under /api/v1 with
// its OpenAPI document, metrics for Prometheus, and the handler that sends every
// other request to where it belongs.
//
// # Promise
//
// Every route of the JSON API is a row of one table; the OpenAPI document is made
// from that table and from the Go types that are sent, so that it cannot describe
// something else than what is served. An error is JSON too:
// {"error": {"code", "message", "details"}}, with the status that fits.
//
// What a change answers is durable. Bodies are read up to a limit, lists are cut
// into pages and written element by element, and of long message bodies a list shows
// the beginning. What is made for an answer is charged to the request.
//
// # Who gets what
//
//	/api/v1/…                       JSON, here, unless it has an api-version
//	/{entity}/messages…             package rest
//	everything with ?api-version=   package atom
//	/metrics                        text for Prometheus, here
//	other GET requests              the site, if there is one
//	everything else                 package atom
//
// # Concurrency
//
// The handler has no state except that of its Parts.
//
// # Not here
//
// Listeners, TLS and health checks: package server. Package caller
// authenticates requests, package problem turns errors into HTTP answers.
package admin
