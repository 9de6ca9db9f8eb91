// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// watcher looks on and lets everything pass.
type watcher struct{ told int }

func (w *watcher) Admit(time.Time, *queue.Queue, []queue.Arrival) ([]queue.SeqNo, error) {
	return nil, nil
}
func (w *watcher) AdmitCanceled(time.Time, []queue.Arrival)      {}
func (w *watcher) Arrived(_ time.Time, as []queue.Arrival)       { w.told += len(as) }
func (w *watcher) Delivered(time.Time, *queue.Delivery)          { w.told++ }
func (w *watcher) Settled(time.Time, Disposition, queue.Settled) { w.told++ }
func (w *watcher) DeadLettered(time.Time, *queue.DeadLetter)     { w.told++ }
func (w *watcher) Expired(time.Time, queue.Expired)              { w.told++ }
func (w *watcher) Idle(time.Time)                                { w.told++ }

var _ IdleObserver = (*watcher)(nil)

// BenchmarkInOutObserved is BenchmarkInOut with somebody who looks on.
func BenchmarkInOutObserved(b *testing.B) { inOut(b, func() Observer { return new(watcher) }) }
