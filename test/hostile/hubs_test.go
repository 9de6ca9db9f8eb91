// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
)

const (
	streamPartitions = 32
	streamGroups     = 8
)

// hubs is the part of the configuration about event hubs.
func hubs() string {
	text := fmt.Sprintf("hubs:\n  - name: stream\n    partitionCount: %d\n    consumerGroups:\n", streamPartitions)
	for i := range streamGroups {
		text += fmt.Sprintf("      - {name: g%d}\n", i)
	}
	return text
}

// reader is the address at which a partition is read for a group.
func reader(group, partition int) string {
	return fmt.Sprintf("stream/ConsumerGroups/g%d/Partitions/%d", group, partition)
}

// readersThatDoNotRead is number 22: as many receivers as a hub allows, most with credit
// for everything, on connections from which nothing is read. Others never grant credit.
func readersThatDoNotRead(s *scene) {
	d := message.Draft{Body: []byte(longText(1 << 10))}
	events := make([]*message.Message, 500)
	for i := range events {
		events[i] = d.Message()
	}
	batch := message.AppendBatch(nil, events...)
	for p := range streamPartitions {
		if n, err := s.flood(root, fmt.Sprint("stream/Partitions/", p), message.FormatBatch, 4, func(int) []byte { return batch }); n != 4 {
			s.Fatalf("%d batches were stored: %v", n, err)
		}
	}
	var attached, refusals atomic.Int64
	together(streamGroups, streamGroups, func(group int) {
		for range 5 { // as many readers without an epoch as there may be
			p, err := s.connect(net.IPv4(127, 0, 0, 1))
			if err == nil {
				err = p.within(patience).login(listenKey)
			}
			if err != nil {
				refusals.Add(streamPartitions) // the key has used up its memory
				return
			}
			for i := range streamPartitions {
				if _, err := p.within(patience).attach(receiveFrom(uint32(i), reader(group, i))); err != nil {
					refusals.Add(1)
					continue
				}
				attached.Add(1)
			}
			for i := range streamPartitions {
				if i%8 == 0 {
					continue // this one gets no credit
				}
				if err := p.credit(uint32(i), 1<<30); err != nil {
					return // it has been cut off, which it may be
				}
			}
		}
	})
	pause(s.ctx, time.Duration(scale(6, 20))*time.Second)
	s.Logf("%d receivers, %d were refused", attached.Load(), refusals.Load())
	if attached.Load() == 0 {
		s.Error("no receiver was attached")
	}
	// Who has another key, and reads, gets everything.
	p := s.peer(root)
	if _, err := p.within(patience).attach(receiveFrom(0, "stream/ConsumerGroups/$Default/Partitions/0")); err != nil {
		s.Fatal(err)
	}
	if err := p.credit(0, 1<<20); err != nil {
		s.Fatal(err)
	}
	for i := range 4 * len(events) {
		if _, err := p.within(patience).receive(); err != nil {
			s.Fatalf("event %d: %v", i, err)
		}
	}
}

// batchesOfNothing is number 22 for senders: a batch of a megabyte that is nothing but
// empty events, and batches that are broken at every place.
func batchesOfNothing(s *scene) {
	var empty []byte
	for len(empty) < 1<<20-16 {
		empty = append(empty, "\x00\x53\x75\xa0\x00"...)
	}
	const partition = "stream/Partitions/31"
	if n, err := s.flood(root, partition, message.FormatBatch, 4, func(int) []byte { return empty }); n != 4 {
		s.Fatalf("%d batches of empty events were stored: %v", n, err)
	}
	d := message.Draft{Annotations: []message.Pair{{Name: message.AnnotationPartitionKey, Value: codec.String("k")}}, Body: []byte("body")}
	whole := message.AppendBatch(nil, d.Message(), d.Message())
	accepted, _ := s.flood(root, "stream", message.FormatBatch, len(whole)-1, func(i int) []byte { return whole[:i+1] })
	s.Logf("%d of %d cut batches were accepted", accepted, len(whole)-1)
	if accepted > 1 { // the one that ends behind its first event
		s.Errorf("%d batches that are cut somewhere were accepted", accepted)
	}
	p := s.peer(listenKey)
	if _, err := p.within(patience).attach(receiveFrom(0, "stream/ConsumerGroups/$Default/Partitions/31")); err != nil {
		s.Fatal(err)
	}
	if err := p.credit(0, 1<<20); err != nil {
		s.Fatal(err)
	}
	events := 4*(len(empty)/5) - 1
	for i := range events {
		if _, err := p.within(patience).receive(); err != nil {
			s.Fatalf("event %d: %v", i, err)
		}
	}
	s.Logf("%d empty events were received", events)
}
