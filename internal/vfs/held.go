// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"errors"
	"os"
	"sync"
)

// reserved is how many descriptors a locked disk keeps for itself: enough for the
// files that a journal makes while somebody else has used up all others.
const reserved = 16

// held is what a disk keeps open while a lock is held on it. Without a lock it is
// empty, so that a disk that is only looked at has nothing to close.
type held struct {
	mu    sync.Mutex
	locks int      // guarded by mu
	root  *os.Root // guarded by mu: the directory, to open files in
	dir   *os.File // guarded by mu: the same, to be synced
	// reserve are descriptors that are good for nothing, open so that nobody
	// else in the process can have them; guarded by mu.
	reserve []*os.File
}

// take opens the directory for one more lock.
func (h *held) take(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.locks == 0 {
		root, err := os.OpenRoot(name)
		if err != nil {
			return err
		}
		dir, err := root.Open(".")
		if err != nil {
			return errors.Join(err, root.Close())
		}
		h.root, h.dir = root, dir
	}
	h.locks++
	h.fill()
	return nil
}

// release closes everything with the last lock.
func (h *held) release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.locks--; h.locks > 0 {
		return nil
	}
	errs := []error{h.dir.Close(), h.root.Close()}
	for _, f := range h.reserve {
		errs = append(errs, f.Close())
	}
	h.root, h.dir, h.reserve = nil, nil, nil
	return errors.Join(errs...)
}

// directory returns the open directory, or nil.
func (h *held) directory() *os.Root {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.root
}

// self returns the open directory as a file, or nil.
func (h *held) self() *os.File {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dir
}

// giveUp closes one descriptor of the reserve and reports whether there was one.
func (h *held) giveUp() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.reserve)
	if n == 0 {
		return false
	}
	h.reserve[n-1].Close() // never written
	h.reserve = h.reserve[:n-1]
	return true
}

// refill takes back what the reserve lacks, as far as it is to be had.
func (h *held) refill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fill()
}

// fill is refill with mu held.
func (h *held) fill() {
	for h.locks > 0 && len(h.reserve) < reserved {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return // the next call tries again
		}
		h.reserve = append(h.reserve, f)
	}
}
