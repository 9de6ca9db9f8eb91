// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"encoding/binary"
	"math"
	"time"
)

// version is the first byte of a snapshot. A new layout gets a new number; old
// ones stay readable.
const version = 2

// ratesOf is how many rates a class has in the snapshots of each version.
var ratesOf = [version + 1]int{1: 5, 2: 6}

// Snapshot returns all measurements, for Restore. doc.go has the layout.
func (m *Meter) Snapshot() []byte {
	dst := []byte{version}
	dst = binary.AppendUvarint(dst, uint64(operations))
	for o := range m.kinds {
		dst = m.kinds[o].append(dst)
	}
	dst = binary.AppendUvarint(dst, uint64(max(m.rotated, 0)))
	dst = binary.AppendUvarint(dst, uint64(len(m.classes)))
	for _, c := range m.classes {
		dst = c.append(dst)
	}
	return dst
}

// Restore restores the measurements of the classes that still exist, by their
// names. After an error, which is errSnapshot, nothing has changed.
func (m *Meter) Restore(snapshot []byte) error {
	if len(snapshot) == 0 || snapshot[0] == 0 || snapshot[0] > version {
		return errSnapshot
	}
	s := &source{rest: snapshot[1:]}
	var kinds [operations]Rate
	n := s.uvarint()
	if n > uint64(operations) {
		return errSnapshot
	}
	for o := range n {
		kinds[o].read(s)
	}
	rotated := s.time()
	var restored []*class
	for range min(s.uvarint(), 256) {
		c := new(class)
		c.read(s, ratesOf[snapshot[0]])
		restored = append(restored, c)
	}
	if s.err != nil || len(s.rest) > 0 {
		return errSnapshot
	}
	m.kinds, m.rotated = kinds, rotated
	m.adopt(restored)
	return nil
}

// adopt copies the restored measurements to the classes of the same names.
func (m *Meter) adopt(restored []*class) {
	for i, c := range m.classes {
		for _, r := range restored {
			if r.Name != c.Name {
				continue
			}
			if r.Wait != c.Wait || r.Target != c.Target {
				r.outcomes, r.state = measuringWindow{}, c.state
			}
			r.Class, r.number, r.bucketLength, r.rateWatch, r.backlog = c.Class, c.number, c.bucketLength, c.rateWatch, c.backlog
			m.classes[i] = r
		}
	}
}

func (c *class) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(c.Name)))
	dst = append(dst, c.Name...)
	dst = binary.AppendUvarint(dst, uint64(c.Wait))
	dst = binary.AppendUvarint(dst, math.Float64bits(c.Target))
	for _, r := range c.rates() {
		dst = r.append(dst)
	}
	dst = append(dst, byte(c.state))
	dst = c.outcomes.append(dst)
	if c.wait == nil {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	return c.total.append(c.service.append(c.wait.append(dst)))
}

// read reads what append wrote, or an earlier version with fewer rates.
func (c *class) read(s *source, rates int) {
	c.Name = s.text()
	c.Wait, c.Target = time.Duration(s.time()), s.float()
	for _, r := range c.rates()[:rates] {
		r.read(s)
	}
	if c.state = State(s.byte()); c.state > Missed {
		s.err = errSnapshot
		return
	}
	c.outcomes.read(s)
	if s.byte() == 0 {
		return
	}
	c.ready()
	c.wait.read(s)
	c.service.read(s)
	c.total.read(s)
}

// rates lists the rates in the order of the snapshot, which never changes: add
// new ones at the end.
func (c *class) rates() []*Rate {
	return []*Rate{&c.arrived, &c.completed, &c.deadLettered, &c.refused, &c.evicted, &c.expired}
}

func (r *Rate) append(dst []byte) []byte {
	for _, n := range [...]uint64{r.total, r.pending, uint64(max(r.from, 0)), uint64(max(r.folded, 0))} {
		dst = binary.AppendUvarint(dst, n)
	}
	for _, a := range r.average {
		dst = binary.AppendUvarint(dst, math.Float64bits(a))
	}
	return dst
}

func (r *Rate) read(s *source) {
	*r = Rate{total: s.uvarint(), pending: s.uvarint(), from: s.time(), folded: s.time()}
	for i := range r.average {
		r.average[i] = s.float()
	}
}

func (w *measuringWindow) append(dst []byte) []byte {
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(w.at)), uint64(max(w.ends, 0)))
	for _, c := range w.buckets {
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(c.inTime)), uint64(c.late))
	}
	return dst
}

func (w *measuringWindow) read(s *source) {
	at, ends := s.uvarint(), s.time()
	if at >= longBuckets {
		s.err = errSnapshot
		return
	}
	*w = measuringWindow{at: int(at), ends: ends}
	for i := range w.buckets {
		c := windowBucket{s.count(), s.count()}
		w.buckets[i] = c
		w.long.inTime += c.inTime
		w.long.late += c.late
	}
}
