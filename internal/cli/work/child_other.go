// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package work

import (
	"os"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr { return nil }

func terminate(p *os.Process) error { return p.Kill() }
