// SPDX-License-Identifier: Apache-2.0

package vfs

import "sync"

// endless is the size of a Mem that was given none.
const endless = 1 << 50

// quota counts the space of a Mem. Files take it by whole pages, up to their
// size, and give it back when their last name goes.
type quota struct {
	mu     sync.Mutex
	size   int64 // guarded by mu; of the whole disk
	others int64 // guarded by mu; taken by other processes
	used   int64 // guarded by mu; taken by the files
}

// take uses up to n bytes and returns how many there were.
func (q *quota) take(n int64) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, q.free()/pageSize*pageSize)
	q.used += n
	return n
}

func (q *quota) give(n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used -= n
}

// free returns what is left; mu is held. A crash brings back files that were
// removed, so there may be more in use than there is.
func (q *quota) free() int64 { return max(0, q.size-q.others-q.used) }

// SetSize makes the disk n bytes large, files that are there included.
func (m *Mem) SetSize(n int64) {
	m.quota.mu.Lock()
	defer m.quota.mu.Unlock()
	m.quota.size = n
}

// SetOthers has other processes take n bytes of the disk, or whatever is left.
func (m *Mem) SetOthers(n int64) {
	m.quota.mu.Lock()
	defer m.quota.mu.Unlock()
	m.quota.others = max(0, min(n, m.quota.size-m.quota.used))
}

// Space implements FS.
func (m *Mem) Space() (Space, error) {
	m.quota.mu.Lock()
	defer m.quota.mu.Unlock()
	return Space{Total: m.quota.size, Free: m.quota.free()}, nil
}

// clone returns the space of a disk that has size and others of this one.
func (q *quota) clone() *quota {
	q.mu.Lock()
	defer q.mu.Unlock()
	return &quota{size: q.size, others: q.others}
}

// charge takes space for a file of size bytes and returns up to which size there
// was enough; the lock of the file is held.
func (f *inode) charge(size int64) int64 {
	if f.quota == nil || size <= f.charged {
		return size
	}
	f.charged += f.quota.take((size+pageSize-1)/pageSize*pageSize - f.charged)
	return min(size, f.charged)
}

// refund gives back what a file no longer takes at size bytes; the lock of the
// file is held.
func (f *inode) refund(size int64) {
	if kept := (size + pageSize - 1) / pageSize * pageSize; f.quota != nil && kept < f.charged {
		f.quota.give(f.charged - kept)
		f.charged = kept
	}
}

// unlinked gives back the space of a file that lost its name.
func (f *inode) unlinked() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refund(0)
	f.quota = nil
}
