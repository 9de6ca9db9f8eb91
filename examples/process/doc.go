// SPDX-License-Identifier: Apache-2.0

// Package process is the real binary as a process, for examples that bring their
// own broker.
package process
