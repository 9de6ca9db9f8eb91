// SPDX-License-Identifier: Apache-2.0

//go:build unix

package server

import (
	"os"
	"syscall"
)

// keepOwner gives a file to whom the one that it takes the place of belongs to.
func keepOwner(f *os.File, replaced string) error {
	old, err := os.Stat(replaced)
	if err != nil {
		return err
	}
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	was, ok := old.Sys().(*syscall.Stat_t)
	is, known := mine.Sys().(*syscall.Stat_t)
	if !ok || !known || was.Uid == is.Uid {
		return nil
	}
	return f.Chown(int(was.Uid), int(was.Gid))
}
