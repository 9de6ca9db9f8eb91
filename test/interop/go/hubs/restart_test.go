// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"

	"github.com/triagemq/triagemq/test/interop/go/running"
)

// The broker is killed again and again while events are sent and read. Every
// acknowledged event is read once, by a reader that goes on where it was.
func TestKillUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	const kills, between = 3, 40
	b := running.StartBroker(t, entities)
	h := openOn(t, b.Connection(), "restart", patient)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	h.ctx = ctx

	acked := make(chan int, 10_000) // how many batches have been
	loading, stop := context.WithCancel(ctx)
	defer stop()
	sent := make(chan int, 1)
	go func() {
		defer close(acked)
		n := 0
		for ; loading.Err() == nil && n < cap(acked); n++ {
			events := []*azeventhubs.EventData{{Body: fmt.Append(nil, 2*n)}, {Body: fmt.Append(nil, 2*n+1)}}
			if err := h.trySend(toPartition("1"), events...); err != nil {
				t.Errorf("batch %d: %v", n, err)
				break
			}
			acked <- n
		}
		sent <- 2 * n
	}()

	read, seen := make(chan int, 1), make(chan error, 1)
	r := h.readerWith(all, "1", azeventhubs.PartitionClientOptions{StartPosition: earliest, Prefetch: 50})
	go func() {
		next, seq := 0, int64(0)
		until := -1
		for until < 0 || next < until {
			events, err := r.ReceiveEvents(ctx, 1, nil)
			if err != nil {
				seen <- fmt.Errorf("after event %d: %w", next-1, err)
				return
			}
			for _, e := range events {
				var n int
				if _, err := fmt.Sscan(string(e.Body), &n); err != nil || n > next || e.SequenceNumber != seq {
					seen <- fmt.Errorf("read event %q with number %d, want %d or an older one with number %d", e.Body, e.SequenceNumber, next, seq)
					return
				}
				seq++
				if n == next { // else it was sent again, because its acknowledgement was lost
					next++
				}
			}
			select {
			case until = <-read:
			default:
			}
		}
		seen <- nil
	}()

	progress := func() {
		for range between {
			select {
			case _, ok := <-acked:
				if !ok {
					t.Fatal("the producer gave up")
				}
			case err := <-seen:
				t.Fatalf("the reader gave up: %v", err)
			case <-ctx.Done():
				t.Fatal("the producer hangs")
			}
		}
	}
	for range kills {
		progress()
		b.Kill()
		if err := b.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	progress()
	stop()
	total := <-sent
	read <- total
	h.send(toPartition("1"), fmt.Sprint(total)) // wakes the reader once more
	if err := <-seen; err != nil {
		t.Error(err)
	}
	p, err := h.producer.GetPartitionProperties(ctx, "1", nil)
	if err != nil || p.LastEnqueuedSequenceNumber < int64(total) {
		t.Errorf("%d events were acknowledged, the partition has %+v, %v", total+1, p, err)
	}
	h.reader(all, "1", azeventhubs.StartPosition{SequenceNumber: to.Ptr(p.LastEnqueuedSequenceNumber), Inclusive: true}).wants("the last", fmt.Sprint(total))
	t.Logf("%d kills, %d events", kills, total)
}
