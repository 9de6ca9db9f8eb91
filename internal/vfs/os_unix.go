// SPDX-License-Identifier: Apache-2.0

//go:build unix && !aix && !solaris

package vfs

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes an advisory lock that ends with the process, so that a crash
// never leaves a store locked. Two opens of one process exclude each other too.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// syncDir ignores file systems that cannot sync a directory, such as some of the
// network: they have no more to offer.
func syncDir(f *os.File) error {
	err := f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func isTooManyFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
