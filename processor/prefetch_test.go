// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/client"
)

// What is fetched ahead is bounded over all partitions, each of which has something; and when
// there is space again, everything is fetched.
func TestPrefetchIsBoundedOverAllPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const parts, each, ahead = 20, 100, 30_000
		b := newTestbed(t, parts)
		b.coordinated()
		b.Batch, b.PrefetchBytes = 1, 2*ahead
		block := make(chan struct{})
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			<-block
			return b.note(ctx, p, events)
		}
		b.start()
		elapse(time.Second)
		for range each { // one by one, so that each is a delivery
			for part := range parts {
				b.hub.publish(part, 1)
			}
			synctest.Wait()
		}
		waiting := 0
		for _, p := range b.Status().Partitions {
			if p.Waiting == 0 {
				t.Errorf("partition %s has fetched nothing", p.ID)
			}
			waiting += p.Waiting
		}
		if size := 300 * (waiting + parts); size < ahead || size > ahead+300*parts { // of each one is in hand
			t.Errorf("%d events wait, %d bytes are in use; want about %d", waiting, size, ahead)
		}
		close(block)
		synctest.Wait()
		for _, p := range b.Status().Partitions {
			equal(t, "handled of "+p.ID, b.seen(p.ID), numbers(0, each-1))
		}
		equal(t, "bytes in use", b.live.Load().memory.used, 0)
		equal(t, "stop", b.stop(), nil)
	})
}
