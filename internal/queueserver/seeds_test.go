// SPDX-License-Identifier: Apache-2.0

//go:build !race

package queueserver

// faultSeeds is how many games TestFaultsAtRandom plays.
const faultSeeds = 40
