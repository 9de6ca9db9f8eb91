// SPDX-License-Identifier: Apache-2.0

//go:build race

package queueserver

// These tests call the shards one after another: the race detector has little to
// find in them, and all of them run in full without it.
const (
	faultSeeds   = 10
	fewerBodies  = 4
	fewerLayouts = 3
)
