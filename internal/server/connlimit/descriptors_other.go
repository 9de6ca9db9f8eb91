// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package connlimit

import "math"

// MaxFiles returns how many descriptors the process may have: there is no limit
// here that connections could reach.
func MaxFiles() int { return math.MaxInt }
