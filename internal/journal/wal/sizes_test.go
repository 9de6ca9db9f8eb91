// SPDX-License-Identifier: Apache-2.0

//go:build !race

package wal

const (
	// crashPoints is how many disks, each left by another crash, must be recovered.
	crashPoints = 12_000
	// flips is how many bits are flipped, one after another.
	flips = 2000
)
