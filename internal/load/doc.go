// SPDX-License-Identifier: Apache-2.0

// Package load puts a broker under load and measures it: a client of AMQP 1.0 that
// does as little as a client can, so that what is measured is the broker.
//
// A run has three parts, each of them optional: a backlog is filled; senders
// and receivers work against each other for a time or a number of messages;
// urgent messages are sent one at a time past the backlog, while workers with
// one message each are kept busy.
//
// # Promise
//
// A message counts as sent when the broker has accepted it, and as received
// when its settlement is written. Every message contains the time at which it
// was sent, so that latency is measured from end to end, on one clock. Messages
// that were accepted and not received are reported as missing.
//
// # Assumptions
//
// No other client uses the queue. Messages of earlier runs are recognised,
// settled and left out of the figures.
//
// # Concurrency
//
// A connection is one goroutine: it reads what there is, handles all of it, and
// answers with one write. Histograms belong to a connection and are merged when
// it is over; counters are atomic and are added to once for each read.
//
// # Not here
//
// Flags, printing and the broker of a self-contained run: the command.
package load
