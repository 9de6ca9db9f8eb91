// SPDX-License-Identifier: Apache-2.0

package queue

// strict serves the highest open level. It remembers nothing.
type strict struct{}

func (strict) touch(Level)  {}
func (strict) served(Level) {}

func (strict) pick(q *Queue, _ int64, lo, hi Level) (Level, bool) {
	return q.levels.open.highest(lo, hi)
}

func (strict) rank(l Level, _, _ int64) int { return int(l) }
