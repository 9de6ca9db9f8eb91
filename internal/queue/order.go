// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// newPicker returns the discipline of an order.
func newPicker(Order) picker { return strict{} }

func (q *Queue) goesFirst(_ SeqNo, o *entry, _ SeqNo, e *entry, _ int64) bool {
	return o.level > e.level
}
func (q *Queue) admitKeys(int64)                    {}
func (q *Queue) keysDeadline() int64                { return never }
func (q *Queue) landKey(*entry)                     {}
func (q *Queue) flyKey(*entry)                      {}
func (q *Queue) holdOfKey(*entry) (Hold, time.Time) { return HeldByNothing, time.Time{} }
