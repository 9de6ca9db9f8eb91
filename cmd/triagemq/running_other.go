// SPDX-License-Identifier: Apache-2.0

//go:build !unix || aix || solaris

package main

import "errors"

// announce does nothing: there is no SIGHUP to be sent.
func announce(string) (end func(), err error) { return func() {}, nil }

func brokerOn(string) (pid int, err error) {
	return 0, errors.New("whether one runs cannot be told on this system")
}

func hangUp(int) error { return errors.ErrUnsupported }
