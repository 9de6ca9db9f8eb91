// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"
)

// The layout of a histogram. It is in snapshots and never changes.
const (
	subBits  = 4            // buckets to a doubling, as a power of two
	subCount = 1 << subBits // sixteen: a value is known to about 3 %
	topBit   = 42           // values reach 2^42 µs, 50 days; longer counts as that
	buckets  = subCount + (topBit-subBits)*subCount
)

// Histogram counts lengths of time in buckets whose width grows with the value:
// exact to a microsecond below 16 µs, to one part in 32 above, up to 50 days.
// Its size is always 2.5 KB. The zero value is empty.
type Histogram struct {
	counts [buckets]uint32 // full counts stay full
	n      uint64
	sum    uint64 // microseconds
}

// bucketOf returns the bucket of a number of microseconds.
func bucketOf(us uint64) int {
	if us < subCount {
		return int(us)
	}
	octave := bits.Len64(us) - 1 // at least subBits
	if octave >= topBit {
		return buckets - 1
	}
	shift := octave - subBits
	return (shift << subBits) + int(us>>shift)
}

// bounds returns the least value of a bucket and the least value above it.
func bounds(b int) (from, to uint64) {
	if b < subCount {
		return uint64(b), uint64(b) + 1
	}
	shift := b>>subBits - 1
	from = uint64(subCount+b&(subCount-1)) << shift
	return from, from + 1<<shift
}

// Record counts d; below zero counts as zero.
func (h *Histogram) Record(d time.Duration) {
	us := min(uint64(max(d, 0))/uint64(time.Microsecond), 1<<topBit-1)
	if c := &h.counts[bucketOf(us)]; *c != math.MaxUint32 {
		*c++
	}
	h.n++
	h.sum += us
}

// Count returns how many lengths were recorded.
func (h *Histogram) Count() uint64 { return h.n }

// Mean returns the mean; zero if nothing was recorded.
func (h *Histogram) Mean() time.Duration {
	if h.n == 0 {
		return 0
	}
	return time.Duration(h.sum/h.n) * time.Microsecond
}

// Sum returns the sum of all that was recorded.
func (h *Histogram) Sum() time.Duration { return time.Duration(h.sum) * time.Microsecond }

// Quantile returns a length that a share q of all does not exceed, as the middle
// of its bucket; zero if nothing was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(h.n)))
	var seen uint64
	for b, c := range h.counts {
		if seen += uint64(c); c > 0 && seen >= rank {
			from, to := bounds(b)
			return time.Duration(from+(to-1-from)/2) * time.Microsecond
		}
	}
	return 0
}

// Within returns the share of all that did not exceed limit; the bucket of the
// limit counts in proportion. It is one if nothing was recorded: no objective
// is missed.
func (h *Histogram) Within(limit time.Duration) float64 {
	if h.n == 0 {
		return 1
	}
	us := uint64(max(limit, 0)) / uint64(time.Microsecond)
	at := bucketOf(us)
	var below uint64
	for _, c := range h.counts[:at] {
		below += uint64(c)
	}
	from, to := bounds(at)
	part := min(float64(us-from+1)/float64(to-from), 1)
	return min((float64(below)+part*float64(h.counts[at]))/float64(h.n), 1)
}

// Merge adds the values of other.
func (h *Histogram) Merge(other *Histogram) {
	for b, c := range other.counts {
		h.counts[b] = uint32(min(uint64(h.counts[b])+uint64(c), math.MaxUint32))
	}
	h.n += other.n
	h.sum += other.sum
}

// Append adds the histogram to dst: the number of lengths, their sum, and then
// for each run of buckets in use how many empty ones come before it, its length
// and its counts, all as varints; a run of length zero ends it.
func (h *Histogram) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, h.n), h.sum)
	for b := 0; b < buckets; {
		skip := b
		for b < buckets && h.counts[b] == 0 {
			b++
		}
		run := b
		for b < buckets && h.counts[b] != 0 {
			b++
		}
		if b == run {
			break
		}
		dst = binary.AppendUvarint(dst, uint64(run-skip))
		dst = binary.AppendUvarint(dst, uint64(b-run))
		for _, c := range h.counts[run:b] {
			dst = binary.AppendUvarint(dst, uint64(c))
		}
	}
	return append(dst, 0, 0)
}

// read is the inverse of Append.
func (h *Histogram) read(s *source) {
	*h = Histogram{n: s.uvarint(), sum: s.uvarint()}
	for b := uint64(0); s.err == nil; {
		skip, run := s.uvarint(), s.uvarint()
		if run == 0 {
			return
		}
		if b += skip; skip > buckets || run > buckets || b+run > buckets {
			s.err = errSnapshot
			return
		}
		for range run {
			h.counts[b] = uint32(min(s.uvarint(), math.MaxUint32))
			b++
		}
	}
}
