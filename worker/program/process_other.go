// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package program

import (
	"context"
	"errors"
	"time"
)

const supported = false

var (
	errUnsupported = errors.New("program: running a program for each message needs a Unix system")
	errEnded       = errUnsupported
	errNotStarted  = errUnsupported
)

// process is one run of a program; there are none here.
type process struct {
	command        []string
	dir            string
	env            []string
	stdin          []byte
	stdout, stderr outputWriter
}

func (p *process) run(context.Context, func(error) time.Duration, func(stop, cont func() error)) error {
	return errUnsupported
}
