// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"math"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

// A retention that is nearly as long as a duration can be has its deadline in the future:
// one in the past would have the engine tick without end.
func TestTheLongestRetentionIsNotOver(t *testing.T) {
	var out machine.Effects
	for _, keep := range []time.Duration{math.MaxInt64, math.MaxInt64 - time.Second, math.MaxInt64 - time.Hour} {
		p := New()
		p.Retain(Retention{For: keep})
		p.Create(&out)
		p.Append(epochStart, Arrival{Body: machine.Ref{At: 1, Size: 1}, Count: 1}, &out)
		if at, ok := p.NextDeadline(); ok && at.Before(epochStart.Add(keep)) {
			t.Errorf("events that are kept for %v are to be dropped at %v", keep, at)
		}
		if p.Tick(epochStart.Add(time.Hour), &out); p.First() != 0 {
			t.Errorf("events that are kept for %v are gone after an hour", keep)
		}
	}
}
