// SPDX-License-Identifier: Apache-2.0

package work

import (
	"os"
	"syscall"
)

// childAttributes keep the terminal's Ctrl-C from worker processes, which the supervisor
// stops, and stop them when the supervisor is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
