// SPDX-License-Identifier: Apache-2.0

// Package work has the command that runs a program for each message of its pools.
//
//	work.go       the command and its flags
//	pools.go      from settings to pools, and running them
//	processes.go  --processes: keeps several worker processes running
//
// A pool of flags and a pool of a file are the same config.Pool, and are checked by the
// same function.
package work
