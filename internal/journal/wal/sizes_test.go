// SPDX-License-Identifier: Apache-2.0

//go:build !race

package wal

const (
	// crashPoints is how many disks, each left by another crash, must be recovered.
	crashPoints = 12_000
	// restarts is how many disks run full through several lives.
	restarts = 200
	// resizes is how many of the calls that change the size of segments crash: one
	// in so many.
	resizes = 1
	// crashWays is in how many ways each call of the golden store's recovery crashes.
	crashWays = 4
	// fullDisks is how many disks run full once.
	fullDisks = 300
	// idleSends is how many records of 1 MiB a store takes before it rests.
	idleSends = 400
)

// diskSizes are the disks that segments must fit.
var diskSizes = []int64{60 << 20, 200 << 20, 500 << 20}
