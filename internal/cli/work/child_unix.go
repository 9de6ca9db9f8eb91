// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package work

import (
	"os"
	"syscall"
)

// childAttributes keep the terminal's Ctrl-C from worker processes, which the supervisor
// stops.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
