// SPDX-License-Identifier: Apache-2.0

// Package limits runs the real binary with few resources of the system, and
// checks that it continues to serve. It has tests only.
//
// It runs on Linux, where a shell can set such limits and a machine has many loopback
// addresses.
//
// TRIAGEMQ_BINARY names the binary; without it the tests build one.
package limits
