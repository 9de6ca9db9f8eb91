// SPDX-License-Identifier: Apache-2.0

// Package script runs tests that are written as transcripts: commands, and below
// them what they printed.
//
// # Format
//
// A file is a story of blocks with blank lines between them. A block is some
// command lines, a line of four dashes, and the output of all of them together.
// Lines that begin with # are for the reader.
//
//	# The older of two equals goes first.
//	send body=a level=4
//	send body=b level=4
//	----
//	sent 1
//	sent 2
//
//	receive
//	----
//	1 a
//
// A command line is a name and arguments, each a word or key=value; quotes in the
// manner of Go keep blanks together. An empty line of output is written as a
// single dot, because a blank line ends the block.
//
// Run with -update rewrites what is below the dashes. Read the difference before
// you keep it.
//
// [Section] does the same for a part of a page in the guide that is made by a test.
//
// # Concurrency
//
// One goroutine; files are subtests, one after another.
package script
