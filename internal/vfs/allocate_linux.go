// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate allocates blocks for n bytes at off, without writing them. If the
// file system cannot do that, it returns errors.ErrUnsupported.
func allocate(f *os.File, off, n int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, off, n)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fallocate", err)
		}
	}
}
