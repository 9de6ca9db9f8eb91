// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"testing"

	"github.com/triagemq/triagemq/internal/queue"
)

// A1, A7: a few messages that wait in one shard, scattered over the log by what goes
// through another, do not keep the whole log.
func TestFewMessagesOfOneShardDoNotKeepTheLogOfAnother(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		t.Run(fmt.Sprint(n, " shards"), func(t *testing.T) {
			f := newFleet(t, n, Options{SnapshotAfter: 64 << 10, CacheBytes: 1})
			busy := f.shards[0]
			through := busy.define("busy", minute)
			ids := make([]ID, n)
			for i, r := range f.shards[1:] {
				ids[i+1] = r.define("slow", minute)
			}
			k := busy.attach(through, Main, queue.Want{})
			const count = 8000
			for i := range count {
				busy.send(through, 4, fmt.Sprintf("%01000d", i))
				k.c.Allow(uint64(i + 1))
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
