// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package budget

// systemMemory is not known here.
func systemMemory() int64 { return 0 }
