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
)
