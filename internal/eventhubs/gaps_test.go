// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/entity"
)

// A drain ends although events that it waited for are gone: retention has dropped them
// before the receiver had credit for them.
func TestDrainBehindRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		idle := func(p *rawPeer, d time.Duration) { // on a connection that stays
			const often = 10 * time.Second
			for ; d > 0; d -= often {
				empty := frame.AppendHeader(nil, frame.TypeAMQP, 0)
				frame.SetSize(empty, 0)
				p.write(empty)
				time.Sleep(often)
			}
		}
		if _, err := b.broker.CreateHub(t.Context(), entity.Hub{Name: "short", PartitionCount: 1, MessageRetention: entity.Duration(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		b.fill(t, "short/Partitions/0", 1, 5, 100)
		p := b.raw(t, 1<<30)
		p.reads()
		p.attach(0, "short/ConsumerGroups/$Default/Partitions/0")
		synctest.Wait()
		idle(p, 3*time.Minute)
		if info, err := b.broker.PartitionInfo(t.Context(), "short", "0"); err != nil || info.First != 5 || info.Last != 4 {
			t.Fatalf("the events are still there: %+v, %v", info, err)
		}
		p.flow(0, 0, 20, true)
		idle(p, 10*time.Second)
		if last := p.lastFlow(); !last.Drain || last.LinkCredit != 0 || last.DeliveryCount != 20 {
			t.Errorf("the drain was answered by %+v", last)
		}
	})
}
