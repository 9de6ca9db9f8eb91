// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"encoding/binary"
	"errors"
	"math"
)

// errSnapshot means that a snapshot is not one that this version can read.
var errSnapshot = errors.New("objective: damaged snapshot")

// source reads a snapshot. Its first error sticks, and everything read after it
// is zero.
type source struct {
	rest []byte
	err  error
}

func (s *source) uvarint() uint64 {
	v, n := binary.Uvarint(s.rest)
	if n <= 0 || s.err != nil {
		s.err, s.rest = errSnapshot, nil
		return 0
	}
	s.rest = s.rest[n:]
	return v
}

// time reads an instant or a length of time, which are never negative.
func (s *source) time() int64 {
	v := s.uvarint()
	if v > math.MaxInt64 {
		s.err = errSnapshot
		return 0
	}
	return int64(v)
}

// count reads the number of messages in a bucket.
func (s *source) count() uint32 { return uint32(min(s.uvarint(), math.MaxUint32)) }

func (s *source) float() float64 {
	f := math.Float64frombits(s.uvarint())
	if math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
		s.err = errSnapshot
		return 0
	}
	return f
}

func (s *source) byte() byte {
	if len(s.rest) == 0 || s.err != nil {
		s.err = errSnapshot
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

func (s *source) text() string {
	n := s.uvarint()
	if n > uint64(len(s.rest)) {
		s.err = errSnapshot
		return ""
	}
	text := string(s.rest[:n])
	s.rest = s.rest[n:]
	return text
}
