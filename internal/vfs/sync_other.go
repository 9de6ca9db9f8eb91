// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package vfs

import "os"

// syncData uses the strongest sync that Go knows for the system; on macOS that
// is F_FULLFSYNC.
func syncData(f *os.File) error { return f.Sync() }
