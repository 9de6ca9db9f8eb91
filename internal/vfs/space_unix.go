// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd

package vfs

import "golang.org/x/sys/unix"

func diskSpace(root string) (Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(root, &st); err != nil {
		return Space{}, err
	}
	block := int64(st.Bsize)
	return Space{Total: int64(st.Blocks) * block, Free: max(0, int64(st.Bavail)) * block}, nil
}
