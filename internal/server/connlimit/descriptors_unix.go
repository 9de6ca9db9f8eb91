// SPDX-License-Identifier: Apache-2.0

//go:build unix

package connlimit

import (
	"math"
	"syscall"
)

// MaxFiles returns how many descriptors the process may have: its soft limit, which
// Go's runtime has raised to the hard one before main began.
func MaxFiles() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || uint64(l.Cur) > math.MaxInt32 {
		return math.MaxInt // none worth knowing
	}
	return int(l.Cur)
}
