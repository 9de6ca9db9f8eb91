// SPDX-License-Identifier: Apache-2.0

// Package server puts the broker together: it opens the store, starts every part
// on top of the one below, listens, and stops all of it in the opposite order.
//
// # Promise
//
// One port serves everything. The first bytes of a connection tell AMQP, TLS,
// and HTTP apart; behind TLS they are looked at again; behind HTTP may be a
// WebSocket that carries AMQP. SDKs use one host and port for all of these.
//
// What is not encrypted is served to this machine only, unless the operator says
// otherwise. The well-known development key opens the door to this machine only,
// without exception: a broker that accepts it listens on loopback alone.
//
// A peer that has not proved anything is given little: some seconds to speak, a
// place of which there are few, and no memory to fill. When there are too many
// connections the oldest unauthenticated peer of the network with the most of them goes, so
// that who logs in gets through. A connection by HTTP has proved something when a
// request on it was authenticated. Connections never use up the descriptors that
// the store needs.
//
// A page in a browser gets nothing from us that it could not get by itself: see
// browser.go. A webhook reaches nothing that only we can reach.
//
// Keys and certificates can be changed while it runs: [Config.Changes] and
// [Config.Reload] have them read again. What cannot be read stays as it was. The keys
// that the broker makes itself are kept only when everything is up, so that a start
// that fails leaves none that was not printed.
//
// # Concurrency
//
// Each connection has a goroutine that [Run]'s top layer waits for. When that
// layer is asked to stop, it stops accepting, notifies every peer, and returns when
// they are disconnected.
//
// # Not here
//
// What protocols mean (packages endpoint and servicebus), flags and files
// (command serve, package config).
package server
