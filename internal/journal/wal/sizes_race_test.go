// SPDX-License-Identifier: Apache-2.0

//go:build race

package wal

// Nothing in these tests runs at the same time as anything else, so that the race
// detector has little to find: with it there are fewer.
const (
	crashPoints = 2_000
	restarts    = 30
	resizes     = 9
)
