// SPDX-License-Identifier: Apache-2.0

package policy

// Depth is a number of ready messages and their bytes.
type Depth struct{ Count, Bytes int64 }

// Plus returns the sum.
func (d Depth) Plus(e Depth) Depth { return Depth{d.Count + e.Count, d.Bytes + e.Bytes} }

// Minus returns the difference.
func (d Depth) Minus(e Depth) Depth { return Depth{d.Count - e.Count, d.Bytes - e.Bytes} }

// Over returns by how much d exceeds the limits that are set.
func (d Depth) Over(limit Depth) (excess Depth) {
	if limit.Count > 0 {
		excess.Count = max(d.Count-limit.Count, 0)
	}
	if limit.Bytes > 0 {
		excess.Bytes = max(d.Bytes-limit.Bytes, 0)
	}
	return excess
}

// AtMost returns the smaller of each.
func (d Depth) AtMost(e Depth) Depth { return Depth{min(d.Count, e.Count), min(d.Bytes, e.Bytes)} }

// Covers reports whether d is at least e in both.
func (d Depth) Covers(e Depth) bool { return d.Count >= e.Count && d.Bytes >= e.Bytes }
