// SPDX-License-Identifier: Apache-2.0

package vfs

import "golang.org/x/sys/unix"

// shortSlice is the scheduler slice that a syncing thread requests, in
// nanoseconds: the shortest that the kernel grants.
const shortSlice = 100_000

// schedSlice is the scheduler setting of a thread before requestShortSlice.
type schedSlice struct {
	tid int // zero if nothing was changed
	was unix.SchedAttr
}

// requestShortSlice requests a short scheduler slice for the calling thread.
//
// A sync sleeps two or three times: for the data, perhaps for the inode, for
// the flush. Each time the thread then needs a processor for a few
// microseconds. On a busy machine it would wait for milliseconds, until the
// slice of another thread ends. A thread with a short slice is scheduled
// earlier than others that had the same share, and its share does not grow.
// Linux does so since 6.12, without privileges; older kernels ignore the
// request.
//
// The goroutine may have moved to another thread by the time of restore, so the
// thread is identified by its id.
func requestShortSlice() schedSlice {
	tid := unix.Gettid()
	was, err := unix.SchedGetAttr(tid, 0)
	if err != nil || was.Policy != unix.SCHED_NORMAL {
		return schedSlice{} // the slice is an optimisation, and real-time threads do not need it
	}
	quick := *was
	quick.Runtime = shortSlice
	if unix.SchedSetAttr(tid, &quick, 0) != nil {
		return schedSlice{}
	}
	return schedSlice{tid, *was}
}

// restore undoes requestShortSlice.
func (p schedSlice) restore() {
	if p.tid != 0 {
		_ = unix.SchedSetAttr(p.tid, &p.was, 0) // a short slice does no harm
	}
}
