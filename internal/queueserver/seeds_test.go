// SPDX-License-Identifier: Apache-2.0

//go:build !race

package queueserver

const (
	// faultSeeds is how many games TestFaultsAtRandom plays.
	faultSeeds = 40
	// fewerBodies divides the messages that pass through a store that must stay small.
	fewerBodies = 1
	// fewerLayouts selects one of so many ways to drain or to fill a disk.
	fewerLayouts = 1
)
