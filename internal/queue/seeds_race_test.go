// SPDX-License-Identifier: Apache-2.0

//go:build race

package queue

// A queue has no goroutines: the race detector has nothing to find.
const defaultSeeds = 1
