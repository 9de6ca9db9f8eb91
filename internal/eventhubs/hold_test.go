// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/budget"
)

// Receivers that have stopped in the middle of a large batch, for lack of credit, do not
// keep the memory for it from others that use the same key.
func TestPausedReceiversLetOthersRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startWith(t, budget.NewProcess(budget.Limits{Process: 8 << 20}))
		for i := range 4 {
			b.fill(t, partitionTo(i), 4, 500, 1000) // batches of half a megabyte
		}
		reader := b.raw(t, 1<<30)
		reader.reads()
		reader.attach(0, partition(0))
		synctest.Wait()
		paused := []*rawPeer{b.raw(t, 1<<30), b.raw(t, 1<<30)}
		for _, p := range paused {
			p.reads()
			for i := range uint32(4) {
				p.attach(i, partition(int(i)))
			}
			synctest.Wait()
		}
		for _, p := range paused {
			for i := range uint32(4) {
				p.flow(i, 0, 1, false)
			}
		}
		synctest.Wait()
		reader.flow(0, 0, 10_000, false)
		time.Sleep(20 * latestAgain)
		if got := reader.got(0); got != 2000 {
			t.Errorf("%d events of 2000 have come while others paused", got)
		}
		for _, p := range paused {
			for i := range uint32(4) {
				p.flow(i, 1, 10_000, false)
			}
		}
		time.Sleep(20 * latestAgain)
		for _, p := range paused {
			for i := range uint32(4) {
				if got := p.got(i); got != 2000 {
					t.Errorf("%d events of 2000 have come after a pause", got)
				}
			}
		}
	})
}

// What receivers have ahead leaves memory to other links: with less than a quarter of it
// left, deliveries to all peers of the key leave one at a time.
func TestReceiversLeaveMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startWith(t, budget.NewProcess(budget.Limits{Process: 8 << 20}))
		for i := range 4 {
			b.fill(t, partitionTo(i), 40, 100, 256)
		}
		p := b.raw(t, 1<<30)
		for i := range uint32(4) {
			p.attach(i, partition(int(i)))
		}
		for i := range uint32(4) {
			p.flow(i, 0, 1<<20, false) // and it reads nothing
		}
		buf := make([]byte, 4096)
		for range 4 {
			_, _ = p.Conn.Read(buf)
			synctest.Wait()
		}
		const limit = 2 << 20 // of a connection: half of its key's, which is half of all
		if used := b.memory.Usage().Used; used > limit-limit/4 {
			t.Errorf("%d bytes of %d are held for one connection", used, limit)
		}
	})
}
