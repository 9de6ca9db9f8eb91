// SPDX-License-Identifier: Apache-2.0

package connlimit

import "math"

// Connections returns how many connections there may be: what was configured,
// or less if the process has too few descriptors. Each connection is one; the
// store has one for each of its segments, needs more when it makes the next, and
// must never find that connections have taken the last.
//
// files is how many descriptors the process may have, segments how many of them
// the stores use now.
func Connections(configured, files, segments int) int {
	if files == math.MaxInt {
		return configured
	}
	return min(configured, max(files-reservedFiles(files)-segments, 1))
}

// HubFiles returns how many files the logs of all event hubs may have open, of the descriptors
// that the process may have: a quarter. They are opened when they are used, so their number
// is not bounded by it; more than some thousand would not make them faster.
func HubFiles(files int) int { return min(files/4, 4096) }

// reservedFiles is how many of files descriptors are kept for the store to grow,
// for listeners, and for what is open for a moment: a quarter, but no fewer than
// 64, and no more than half.
func reservedFiles(files int) int { return max(files/4, min(64, files/2)) }
