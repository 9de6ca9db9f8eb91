// SPDX-License-Identifier: Apache-2.0

package vfs

import "golang.org/x/sys/unix"

// turn is the time on a processor that a syncing thread asks for at once, in
// nanoseconds: the shortest that the kernel grants.
const turn = 100_000

// pace is how the kernel shared the processors with a thread before quicken.
type pace struct {
	tid int // zero if nothing was changed
	was unix.SchedAttr
}

// quicken asks the kernel for short turns on a processor for the calling thread.
//
// A sync sleeps two or three times: for the data, perhaps for the inode, for the
// flush. Each time the thread then needs a processor for a few microseconds, and on
// a busy machine it would wait until somebody's turn ends, which is milliseconds. A
// thread with short turns goes before others that had no fewer, and gets no larger
// share for it. Linux does so since 6.12, for anybody; older kernels ignore the wish.
//
// The goroutine may have moved to another thread by the time of restore, so the
// thread is named by its number.
func quicken() pace {
	tid := unix.Gettid()
	was, err := unix.SchedGetAttr(tid, 0)
	if err != nil || was.Policy != unix.SCHED_NORMAL {
		return pace{} // it is only a wish, and what runs in real time needs none
	}
	quick := *was
	quick.Runtime = turn
	if unix.SchedSetAttr(tid, &quick, 0) != nil {
		return pace{}
	}
	return pace{tid, *was}
}

// restore undoes quicken.
func (p pace) restore() {
	if p.tid != 0 {
		_ = unix.SchedSetAttr(p.tid, &p.was, 0) // short turns hurt nobody
	}
}
