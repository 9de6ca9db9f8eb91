// SPDX-License-Identifier: Apache-2.0

package host

import (
	"math"
	"runtime"
	"runtime/debug"
)

// ballast makes the garbage of a busy broker worth collecting: Go collects when
// the heap has doubled, and that of a broker without a backlog is so small (ten
// megabytes) that it doubles ten times a second. A block that is never touched
// counts as heap and takes no memory, so that what comes together between two
// collections is at least as large; the price is that much memory at most, under
// load, whatever waits in the queues. Who has set a limit for memory
// (GOMEMLIMIT) has decided otherwise: the block would count there too. The caller
// has it dropped at the end.
func ballast() (drop func()) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return func() {}
	}
	block := make([]byte, 64<<20)
	return func() { runtime.KeepAlive(block) }
}
