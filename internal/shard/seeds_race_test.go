// SPDX-License-Identifier: Apache-2.0

//go:build race

package shard

// faultSeeds is how many games TestFaultsAtRandom plays.
const faultSeeds = 10
