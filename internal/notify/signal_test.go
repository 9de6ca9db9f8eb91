// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/triagemq/triagemq/internal/notify"
)

func TestNotifyNeverBlocksAndCountsOnce(t *testing.T) {
	s := notify.New()
	for range 3 {
		s.Notify()
	}
	<-s
	select {
	case <-s:
		t.Error("three calls before the first receive were more than one signal")
	default:
	}
}

func TestReceiverSeesEveryChange(t *testing.T) {
	const writers, changes = 4, 1000
	s := notify.New()
	var state atomic.Int64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range changes {
				state.Add(1)
				s.Notify()
			}
		})
	}
	for state.Load() < writers*changes {
		<-s // would block without end if a signal could be lost
	}
	wg.Wait()
}
