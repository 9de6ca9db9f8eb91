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
// without exception.
//
// A peer that has not proved anything is given little: some seconds to speak, a
// small number of connections for each address, of which the oldest go first,
// and no memory to fill. It gives way to others when there are too many
// connections. Connections never use up the descriptors that the store needs.
//
// # Concurrency
//
// Each connection has a goroutine that [Run]'s top layer waits for. When that
// layer is told to stop, it stops accepting, tells every peer, and returns when
// they are gone.
//
// # Not here
//
// What protocols mean (packages endpoint and servicebus), flags and files
// (command serve, package config).
package server
