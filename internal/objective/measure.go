// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"encoding/binary"
	"time"
)

// recentFor is how long a histogram counts before a new one replaces it. Recent
// measurements are those of the last 15 to 30 minutes.
const recentFor = 15 * time.Minute

// Bounds are the upper bounds, in seconds, of the buckets that count all
// measurements, for monitoring systems, which need few and fixed buckets. They
// are in snapshots: add new ones at the end.
var Bounds = [...]float64{
	.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600,
}

// measure is one measured duration: recent values in fine buckets, all values
// in few.
type measure struct {
	current, previous Histogram
	past              cumulative // without current
}

// cumulative counts all measurements since the first. A bucket counts only its
// own values; values above the last bound are only in count.
type cumulative struct {
	count   uint64
	micros  uint64
	buckets [len(Bounds)]uint64
}

// rotate begins a new histogram.
func (m *measure) rotate() {
	m.past.fold(&m.current)
	m.previous = m.current
	m.current = Histogram{}
}

// fold adds a histogram, each of its buckets by its middle.
func (l *cumulative) fold(h *Histogram) {
	l.count += h.n
	l.micros += h.sum
	at := 0
	for b, c := range h.counts {
		if c == 0 {
			continue
		}
		from, to := bounds(b)
		middle := float64(from+(to-1-from)/2) / 1e6
		for at < len(Bounds) && middle > Bounds[at] {
			at++
		}
		if at == len(Bounds) {
			return
		}
		l.buckets[at] += uint64(c)
	}
}

// recent returns the histogram of the recent past.
func (m *measure) recent() *Histogram {
	h := m.current
	h.Merge(&m.previous)
	return &h
}

// Summary is the result of a measure. Durations are in seconds.
type Summary struct {
	Count uint64  `json:"count"` // recently
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`

	// Since the first measurement, for monitoring: how many, their sum, and how
	// many did not exceed each of [Bounds].
	Total   uint64              `json:"total"`
	Sum     float64             `json:"sum"`
	Buckets [len(Bounds)]uint64 `json:"-"`
}

func (m *measure) summary() Summary {
	h := m.recent()
	all := m.past
	all.fold(&m.current)
	s := Summary{
		Count: h.Count(), Mean: h.Mean().Seconds(),
		P50: h.Quantile(.5).Seconds(), P95: h.Quantile(.95).Seconds(), P99: h.Quantile(.99).Seconds(), Max: h.Quantile(1).Seconds(),
		Total: all.count, Sum: float64(all.micros) / 1e6, Buckets: all.buckets,
	}
	for i := range len(s.Buckets) - 1 {
		s.Buckets[i+1] += s.Buckets[i]
	}
	return s
}

func (m *measure) append(dst []byte) []byte {
	dst = m.previous.Append(m.current.Append(dst))
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, m.past.count), m.past.micros)
	dst = binary.AppendUvarint(dst, uint64(len(m.past.buckets)))
	for _, c := range m.past.buckets {
		dst = binary.AppendUvarint(dst, c)
	}
	return dst
}

func (m *measure) read(s *source) {
	m.current.read(s)
	m.previous.read(s)
	m.past = cumulative{count: s.uvarint(), micros: s.uvarint()}
	n := s.uvarint()
	if n > uint64(len(Bounds)) {
		s.err = errSnapshot
		return
	}
	for i := range n {
		m.past.buckets[i] = s.uvarint()
	}
}
