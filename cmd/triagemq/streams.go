// SPDX-License-Identifier: Apache-2.0

package main

import "io"

// streams is where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2 // the command line makes no sense
)

// usageError is a mistake on the command line.
type usageError struct{ error }

// ExitCode returns the code for mistakes on the command line.
func (usageError) ExitCode() int { return exitUsage }

func (e usageError) Unwrap() error { return e.error }

// usage marks err as a mistake on the command line.
func usage(err error) error { return usageError{err} }
