// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/triagemq/triagemq/internal/machine"
)

// count is the command of the benchmark.
type count struct {
	h  *counterHost
	id uint64
	n  int
}

func (c *count) Apply(tx *Tx) {
	c.h.add(c.id, c.n%8, 1, machine.Ref{})
	tx.Reply(c, nil)
}
func (c *count) Fail(error)  {}
func (c *count) Reply(error) { c.n++ }

// BenchmarkCounter is what a command costs without a queue: mailbox, apply, append,
// commit on a disk in memory, reply; 64 commands in a group.
func BenchmarkCounter(b *testing.B) {
	r := newRig(b, Options{SnapshotAfter: 1 << 40})
	c := &count{h: r.h, id: r.define()}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if err := r.e.Submit(c); err != nil {
			b.Fatal(err)
		}
		if n%64 == 63 {
			r.e.Step(r.now)
			if err := r.wal.Commit(); err != nil {
				b.Fatal(err)
			}
			r.e.Step(r.now)
		}
	}
}
