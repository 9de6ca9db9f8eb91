// SPDX-License-Identifier: Apache-2.0

// Package backoff says how long to wait before something that failed is tried again.
package backoff

import (
	"math/rand/v2"
	"time"
)

// Exponential returns a function of the number of failures, from 1: it waits from first to
// most, twice as long each time, with jitter of a quarter.
func Exponential(first, most time.Duration) func(failures int) time.Duration {
	return func(failures int) time.Duration {
		wait := first
		for range failures - 1 {
			if wait >= most/2 {
				wait = most
				break
			}
			wait *= 2
		}
		wait = min(wait, most)
		if quarter := wait / 4; quarter > 0 {
			wait -= rand.N(quarter)
		}
		return wait
	}
}
