// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"
)

// A3: the histogram of steps files a step under the first bound that it does not
// exceed.
func TestStepsAreCountedByHowLongTheyTook(t *testing.T) {
	var c counters
	var st Stats
	for i, took := range map[int]time.Duration{
		0:               st.StepBound(0),
		1:               st.StepBound(0) + 1,
		5:               st.StepBound(5),
		stepBuckets - 1: time.Minute,
	} {
		c.stepped(took)
		if got := c.steps[i].Load(); got != 1 {
			t.Errorf("a step of %v: bucket %d has %d, want 1", took, i, got)
		}
	}
	if got := time.Duration(c.longest.Load()); got != time.Minute {
		t.Errorf("the longest took %v, want a minute", got)
	}
}
