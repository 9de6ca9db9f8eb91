// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package vfs

import (
	"errors"
	"os"
)

// allocate is not to be had here: the caller writes zeros.
func allocate(*os.File, int64, int64) error { return errors.ErrUnsupported }
