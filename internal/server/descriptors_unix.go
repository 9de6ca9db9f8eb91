// SPDX-License-Identifier: Apache-2.0

//go:build unix

package server

import (
	"math"
	"syscall"
)

// maxFiles returns how many descriptors the process may have: its soft limit, which
// Go's runtime has raised to the hard one before main began.
func maxFiles() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || uint64(l.Cur) > math.MaxInt32 {
		return math.MaxInt // none worth knowing
	}
	return int(l.Cur)
}
