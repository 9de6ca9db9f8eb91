// SPDX-License-Identifier: Apache-2.0

package cli

import "io"

// Streams is where a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Exit codes.
const (
	ExitFailed = 1
	ExitUsage  = 2 // the command line makes no sense
)

// usageError is a mistake on the command line.
type usageError struct{ error }

// ExitCode returns the code for mistakes on the command line.
func (usageError) ExitCode() int { return ExitUsage }

func (e usageError) Unwrap() error { return e.error }

// Usage marks err as a mistake on the command line.
func Usage(err error) error { return usageError{err} }
