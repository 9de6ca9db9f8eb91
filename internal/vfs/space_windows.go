// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"math"

	"golang.org/x/sys/windows"
)

func diskSpace(root string) (Space, error) {
	name, err := windows.UTF16PtrFromString(root)
	if err != nil {
		return Space{}, err
	}
	var free, total uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, &total, nil); err != nil {
		return Space{}, err
	}
	return Space{Total: int64(min(total, math.MaxInt64)), Free: int64(min(free, math.MaxInt64))}, nil
}
