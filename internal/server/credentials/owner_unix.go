// SPDX-License-Identifier: Apache-2.0

//go:build unix

package credentials

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner, group and access rights of the file that it replaces.
// A process that may not change owners can replace only a file whose group has the
// rights of its owner.
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
	if !ok || !known {
		return nil
	}
	const group = 0o060
	perm := old.Mode().Perm()
	switch {
	case was.Uid != is.Uid:
		err = f.Chown(int(was.Uid), int(was.Gid))
		if errors.Is(err, fs.ErrPermission) && perm&group == group {
			err = f.Chown(-1, int(was.Gid))
		}
	case was.Gid != is.Gid && perm&group != 0:
		err = f.Chown(-1, int(was.Gid))
	}
	if err != nil {
		return err
	}
	if perm == mine.Mode().Perm() {
		return nil
	}
	return f.Chmod(perm)
}
