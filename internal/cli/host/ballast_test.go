// SPDX-License-Identifier: Apache-2.0

package host

import (
	"runtime"
	"runtime/debug"
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

func TestNoBallastWithinAMemoryLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	defer ballast()()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc >= 64<<20 {
		t.Errorf("%d bytes in use, want no ballast among them", m.HeapAlloc)
	}
}
