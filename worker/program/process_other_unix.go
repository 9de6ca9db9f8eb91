// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package program

import "syscall"

// attributes has the program lead a group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// waitExited reports that it cannot wait for a process without ending its number's
// use. The rest of the group is then killed after the wait.
func waitExited(int) bool { return false }
