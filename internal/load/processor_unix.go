// SPDX-License-Identifier: Apache-2.0

//go:build unix

package load

import (
	"syscall"
	"time"
)

// ProcessorTime is how long this process was on a processor since it began.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
