// SPDX-License-Identifier: Apache-2.0

//go:build race

package wal

// Nothing in these tests runs at the same time as anything else, so that the race
// detector has little to find: with it there are fewer.
const (
	crashPoints = 400
	restarts    = 8
	resizes     = 27
	crashWays   = 1
	fullDisks   = 40
	idleSends   = 60
)

// diskSizes are the disks that segments must fit.
var diskSizes = []int64{60 << 20}
