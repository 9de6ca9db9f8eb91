// SPDX-License-Identifier: Apache-2.0

// Package shared is what the programs of the Priority Queue example have in
// common: sending a batch of messages of one priority, and a worker that runs your
// code for each message of the subscription in its configuration.
//
// # Promise
//
// A message is completed when its Process returned nil, and delivered again, later,
// when it failed: every message is processed at least once. Package worker sees to it.
//
// # Concurrency
//
// A worker runs as many instances as its configuration says; each processes one
// message at a time, so Process is called by several goroutines.
package shared
