// SPDX-License-Identifier: Apache-2.0

package objective

import "time"

// The two measuring windows of an objective. They are in snapshots.
const (
	shortBuckets = 5
	longBuckets  = 60

	minBucketLength = time.Minute    // so that the windows are five minutes and an hour
	maxBucketLength = 24 * time.Hour // windows of five days and two months at most
)

// bucketLengthFor returns the length of a bucket for an objective. The short
// window is at least five times the wait. In a shorter one, a single stop of
// that length would look like a missed objective.
func bucketLengthFor(wait time.Duration) time.Duration {
	return min(max(minBucketLength, wait), maxBucketLength)
}

// measuringWindow counts messages in time and late, in buckets of time. The
// last five buckets are the short window, the last sixty the long one.
type measuringWindow struct {
	buckets [longBuckets]windowBucket
	at      int          // current bucket
	ends    int64        // when it ends, in nanoseconds; zero is not begun
	long    windowBucket // sum of all buckets
}

type windowBucket struct{ inTime, late uint32 }

// advance drops the buckets that have become too old.
func (w *measuringWindow) advance(now int64, length time.Duration) {
	if now < w.ends {
		return
	}
	if w.ends == 0 || now-w.ends >= int64(length)*longBuckets {
		w.buckets, w.long = [longBuckets]windowBucket{}, windowBucket{}
		w.ends = now + int64(length)
		return
	}
	for now >= w.ends {
		w.at = (w.at + 1) % longBuckets
		old := &w.buckets[w.at]
		w.long.inTime -= old.inTime
		w.long.late -= old.late
		*old = windowBucket{}
		w.ends += int64(length)
	}
}

func (w *measuringWindow) addInTime() { w.buckets[w.at].inTime++; w.long.inTime++ }
func (w *measuringWindow) addLate()   { w.buckets[w.at].late++; w.long.late++ }

// short returns the sum of the last buckets.
func (w *measuringWindow) short() (s windowBucket) {
	for i := range shortBuckets {
		c := w.buckets[(w.at+longBuckets-i)%longBuckets]
		s.inTime += c.inTime
		s.late += c.late
	}
	return s
}

// lateShare returns the share of late messages, with overdue further messages
// that are late already and not started.
func (s windowBucket) lateShare(overdue float64) float64 {
	all := float64(s.inTime) + float64(s.late) + overdue
	if all == 0 {
		return 0
	}
	return (float64(s.late) + overdue) / all
}
