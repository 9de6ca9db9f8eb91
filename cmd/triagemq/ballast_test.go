// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"testing"
)

// Without the ballast a small heap is collected long before this.
func TestBallastPutsCollectionsOff(t *testing.T) {
	drop := ballast()
	defer drop()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if garbage := m.NextGC - m.HeapAlloc; garbage < 64<<20 {
		t.Errorf("the next collection is after %d bytes, want at least 64 MiB", garbage)
	}
}
