// SPDX-License-Identifier: Apache-2.0

// Package streamserver is one event hub: its partitions, those who append to them and
// those who read them; the host of its engine.
//
// # Files
//
//	hub.go       opening and configuring a hub
//	append.go    appending batches, idempotent producers
//	reader.go    reading batches
//	info.go      partitions and readers as an operator sees them
//	errors.go    what can go wrong
package streamserver
