// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"fmt"
	"testing"

	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// A1, A7: a few messages that wait in one shard, scattered over the log by what goes
// through another, do not keep the whole log.
func TestFewMessagesOfOneShardDoNotKeepTheLogOfAnother(t *testing.T) {
	for i, n := range []int{2, 3, 8} {
		if i%fewerLayouts != fewerLayouts/2 {
			continue
		}
		t.Run(fmt.Sprint(n, " shards"), func(t *testing.T) {
			f := newFleet(t, n, Options{SnapshotAfter: 64 << 10, CacheBytes: 1})
			busy := f.shards[0]
			through := busy.define("busy", minute)
			ids := make([]ID, n)
			for i, r := range f.shards[1:] {
				ids[i+1] = r.define("slow", minute)
			}
			k := busy.attach(through, Main, queue.TakeOptions{})
			const count = 8000 / fewerBodies
			for i := range count {
				busy.send(through, 4, fmt.Sprintf("%01000d", i))
				k.c.SetDeliveryLimit(uint64(i + 1))
				if i%20 == 0 { // three for each segment
					for j, r := range f.shards[1:] {
						r.send(ids[j+1], 4, fmt.Sprintf("%0100d", i))
					}
				}
				f.settle()
				k.settle(Complete, k.got[i])
			}
			f.idle()
			waiting := count / 20 * 300 * (n - 1)
			if size := f.shards[0].size(); size > int64(20*(1<<16)+4*waiting) {
				t.Errorf("%d KiB on disk for %d KiB of messages", size>>10, waiting>>10)
			}
		})
	}
}

// A7: shards that move bodies at the same time, on a full disk, leave enough for the
// end of their snapshots and for consumers.
func TestShardsThatMoveBodiesLeaveTheReserve(t *testing.T) {
	for i, n := range []int{2, 4, 8} {
		if i%fewerLayouts != fewerLayouts/2 {
			continue
		}
		t.Run(fmt.Sprint(n, " shards"), func(t *testing.T) {
			f := newFleet(t, n, Options{SnapshotAfter: 64 << 10, CacheBytes: 1})
			f.disk.SetSize(4 << 20)
			ids := make([]ID, n)
			for i, r := range f.shards {
				ids[i] = r.define("q", minute)
			}
			stored := make([]int, n)
			for full := 0; full < n; {
				full = 0
				for i, r := range f.shards {
					err := r.s.Send(&Send{
						Bodies: []*message.Message{text(fmt.Sprintf("%01000d", stored[i]))},
						Copies: []Copy{{ID: ids[i], Arrival: queue.Arrival{Level: queue.Level(stored[i] % 10)}}},
						Done: func(_ []queue.SeqNo, err error) {
							switch {
							case err == nil:
								stored[i]++
							case errors.Is(err, ErrDiskFull):
								full++
							default:
								t.Errorf("send: %v", err)
							}
						},
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				f.settle()
			}
			f.disk.SetOthers(1 << 40)
			takers := make([]*taker, n)
			for i, r := range f.shards {
				takers[i] = r.attach(ids[i], Main, queue.TakeOptions{})
			}
			for left := true; left; { // the levels are scattered over the log
				left = false
				for i, r := range f.shards {
					k := takers[i]
					if stored[i] == 0 {
						continue
					}
					left, k.got = true, nil
					k.c.SetDeliveryLimit(k.c.deliveredCount + uint64(min(10, stored[i])))
					f.settle()
					if r.s.Stuck() || len(k.got) == 0 {
						t.Fatalf("shard %d: stuck %v with %d messages, %+v", i, r.s.Stuck(), stored[i], f.wal.Stats())
					}
					stored[i] -= len(k.got)
					k.settle(Complete, k.got...)
				}
			}
			f.idle()
			for i, r := range f.shards {
				if r.s.tx.Full() || r.s.Stuck() {
					t.Errorf("shard %d: all is consumed, full %v, stuck %v", i, r.s.tx.Full(), r.s.Stuck())
				}
			}
		})
	}
}
