// SPDX-License-Identifier: Apache-2.0

//go:build unix && !aix && !solaris

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// announce says that this process is the broker of a data directory and how to reach
// it, until the function is called that it returns. From here on SIGHUP must be expected.
func announce(data string, at reach) (end func(), err error) {
	f, err := os.OpenFile(filepath.Join(data, runningFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &lock); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	// By this file, as to close another one of it would end the lock. If it does not
	// work, as on a full disk, nobody learns how to reach the broker, and that is all.
	if f.Truncate(0) == nil {
		_, _ = f.WriteString(at.String())
	}
	return func() { f.Close() }, nil
}

// brokerOn returns the process of the broker that runs on a data directory; zero if
// none does.
func brokerOn(data string) (pid int, err error) {
	f, err := os.OpenFile(filepath.Join(data, runningFile), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil {
		return 0, fmt.Errorf("look for the broker: %w", err)
	}
	if lock.Type == syscall.F_UNLCK {
		return 0, nil
	}
	if lock.Pid <= 0 { // in another container, on another machine
		return 0, errors.New("the broker runs where its process cannot be seen")
	}
	return int(lock.Pid), nil
}

// hangUp tells a broker to read its keys, certificates and configuration again.
func hangUp(pid int) error { return syscall.Kill(pid, syscall.SIGHUP) }
