// SPDX-License-Identifier: Apache-2.0

//go:build !unix || aix || solaris

package host

import (
	"errors"
	"os"
	"path/filepath"
)

// announce only says how the broker is reached: there is no SIGHUP to be sent.
func announce(data string, at reach) (end func(), err error) {
	return func() {}, os.WriteFile(filepath.Join(data, runningFile), []byte(at.String()), 0o600)
}

func brokerOn(string) (pid int, err error) {
	return 0, errors.New("whether one runs cannot be told on this system")
}

func hangUp(int) error { return errors.ErrUnsupported }
