// SPDX-License-Identifier: Apache-2.0

package vfs

import "sync"

// endless is the size of a Mem without a limit.
const endless = 1 << 50

// quota counts the space of a Mem. Files use whole pages, up to their size, and
// free them when their last name is removed.
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

// free returns the free space; mu is held. A crash restores files that were
// removed, so more may be in use than the size.
func (q *quota) free() int64 { return max(0, q.size-q.others-q.used) }

// SetSize makes the disk n bytes large, files that are there included.
func (m *Mem) SetSize(n int64) {
	m.quota.mu.Lock()
	defer m.quota.mu.Unlock()
	m.quota.size = n
}

// SetOthers simulates other processes that use n bytes of the disk, or as much
// as is free.
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

// charge reserves space for a file of size bytes and returns the size for which
// there was enough; the lock of the file is held.
func (f *inode) charge(size int64) int64 {
	if f.quota == nil || size <= f.charged {
		return size
	}
	f.charged += f.quota.take((size+pageSize-1)/pageSize*pageSize - f.charged)
	return min(size, f.charged)
}

// refund frees what a file of size bytes no longer needs; the lock of the file
// is held.
func (f *inode) refund(size int64) {
	if kept := (size + pageSize - 1) / pageSize * pageSize; f.quota != nil && kept < f.charged {
		f.quota.give(f.charged - kept)
		f.charged = kept
	}
}

// unlinked frees the space of a file that lost its last name.
func (f *inode) unlinked() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refund(0)
	f.quota = nil
}
