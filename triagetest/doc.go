// SPDX-License-Identifier: Apache-2.0

// Package triagetest runs a broker inside a Go test.
//
//	b := triagetest.Start(t, "queues: [{name: orders}]")
//	c := b.Client()
//
// For a package with Examples, [Main] runs one broker for all of them.
//
// # Promise
//
// It is the broker that `triagemq serve` runs, with its disk in memory. [Broker.Client]
// connects through memory too; a loopback port is opened only for those that ask for
// [Broker.ConnectionString] or [Broker.Port]. The broker is ready when Start returns and
// gone when the test ends. Tests that each start their own do not see each other.
//
// # Assumptions
//
// A loopback interface, if a port is asked for. Nothing is written to the real disk.
//
// # Concurrency
//
// A Broker belongs to its test; [Broker.Crash] must not be called twice at once.
//
// # Not here
//
// Speed: measure against a real broker on a real disk.
package triagetest
