// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

var procLockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// lockFile locks the first byte; the system drops the lock with the process.
func lockFile(f *os.File) error {
	const failImmediately, exclusive = 1, 2
	const errLockViolation = syscall.Errno(33)
	var at syscall.Overlapped
	ok, _, err := procLockFileEx.Call(f.Fd(), failImmediately|exclusive, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case ok != 0:
		return nil
	case errors.Is(err, errLockViolation):
		return ErrLocked
	}
	return err
}

// syncDir has nothing to do: the system journals directory entries itself and
// offers no way to ask for more.
func syncDir(*os.File) error { return nil }

func isNoSpace(err error) bool {
	const errHandleDiskFull, errDiskFull = syscall.Errno(39), syscall.Errno(112)
	return errors.Is(err, errHandleDiskFull) || errors.Is(err, errDiskFull)
}

func isTooManyFiles(err error) bool {
	const errTooManyOpenFiles = syscall.Errno(4)
	return errors.Is(err, errTooManyOpenFiles)
}
