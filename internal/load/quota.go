// SPDX-License-Identifier: Apache-2.0

package load

import (
	"sync/atomic"
	"time"
)

// quota limits what senders send: a number of messages, or a time.
type quota struct {
	until time.Duration // since the run began; zero for no limit
	total uint64        // messages; zero for no limit
	// whole says that it is pointless to go on after the first refusal.
	whole bool
	// rate is how many messages may be sent in a second, counted from a time since the
	// run began; zero for no limit.
	rate  int
	from  time.Duration
	given atomic.Uint64
	ended atomic.Bool
}

// take takes up to n messages and returns the number of the first; none are left
// when it returns zero of them.
func (q *quota) take(now time.Duration, n int) (first uint64, got int) {
	if q.until > 0 && now >= q.until || q.ended.Load() {
		return 0, 0
	}
	end := q.given.Add(uint64(n))
	first = end - uint64(n)
	if q.total == 0 || end <= q.total {
		return first, n
	}
	if first >= q.total {
		return 0, 0
	}
	return first, int(q.total - first)
}

// end makes every later take return zero.
func (q *quota) end() { q.ended.Store(true) }

// wait returns how long to wait until the next message may be sent.
func (q *quota) wait(now time.Duration) time.Duration {
	if q.rate == 0 {
		return 0
	}
	due := q.from + time.Duration(float64(q.given.Load())/float64(q.rate)*float64(time.Second))
	return max(0, due-now)
}
