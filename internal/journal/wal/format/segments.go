// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// SegmentList is a list of segments in ascending order. In a manifest it is text such as
// "1,5-300": every shard keeps much the same ones, most of them in a row, and a
// Manifest is written at each truncation. Version 1 had an array of numbers.
type SegmentList []uint64

// segmentsLimit is how many segments a manifest may list; more would not fit on a disk.
const segmentsLimit = 1 << 24

// MarshalJSON implements json.Marshaler.
func (b SegmentList) MarshalJSON() ([]byte, error) {
	text := []byte{'"'}
	for i := 0; i < len(b); {
		first := b[i]
		last := first
		for i++; i < len(b) && b[i] == last+1; i++ {
			last++
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = strconv.AppendUint(text, first, 10)
		if last > first {
			text = strconv.AppendUint(append(text, '-'), last, 10)
		}
	}
	return append(text, '"'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *SegmentList) UnmarshalJSON(in []byte) error {
	if len(in) > 0 && in[0] == '[' {
		return json.Unmarshal(in, (*[]uint64)(b))
	}
	var text string
	if err := json.Unmarshal(in, &text); err != nil {
		return err
	}
	*b = nil
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 64)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(to, 10, 64)
		}
		if err != nil || last < first || last-first >= segmentsLimit-uint64(len(*b)) {
			return fmt.Errorf("segments %q make no sense", part)
		}
		for n := first; n <= last; n++ {
			*b = append(*b, n)
		}
	}
	return nil
}
