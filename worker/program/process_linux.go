// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes has the program lead a group of its own, and end when this process does.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// waitExited waits until a process has ended, and leaves it to be waited for. So its
// number, which names its group, cannot be used again meanwhile.
func waitExited(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
