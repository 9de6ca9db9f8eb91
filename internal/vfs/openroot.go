// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"errors"
	"os"
	"sync"
)

// reserved is how many descriptors a locked disk keeps in reserve: enough for
// the files that a journal creates while the rest of the process has used up
// all others.
const reserved = 16

// openRoot is what a disk keeps open while it is locked. Without a lock it is
// empty, so that a disk that is only read has nothing to close.
type openRoot struct {
	mu    sync.Mutex
	locks int      // guarded by mu
	root  *os.Root // guarded by mu: the directory, to open files in
	dir   *os.File // guarded by mu: the same, to be synced
	// reserve are unused descriptors. They are open so that the rest of the process
	// cannot use them up; guarded by mu.
	reserve []*os.File
}

// take opens the directory for one more lock.
func (h *openRoot) take(name string) error {
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
func (h *openRoot) release() error {
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
func (h *openRoot) directory() *os.Root {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.root
}

// self returns the open directory as a file, or nil.
func (h *openRoot) self() *os.File {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dir
}

// freeReserve closes one descriptor of the reserve. It reports false if there
// is none.
func (h *openRoot) freeReserve() bool {
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

// refill opens descriptors until the reserve is full or the process has no more.
func (h *openRoot) refill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fill()
}

// fill is refill with mu held.
func (h *openRoot) fill() {
	for h.locks > 0 && len(h.reserve) < reserved {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return // the next call tries again
		}
		h.reserve = append(h.reserve, f)
	}
}
