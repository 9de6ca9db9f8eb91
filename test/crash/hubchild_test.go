// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/vfs"
)

// childHub makes a child one that has an event hub, and no queues.
const childHub = "TRIAGEMQ_CRASH_HUB"

const (
	hubName       = "events"
	hubPartitions = 3
)

// What a child with a hub says besides ready and sent.
const (
	saysFirst = "first" // partition, number of the oldest event, number of the last
	saysEvent = "event" // partition, number, id: listed at the start
	saysSeen  = "seen"  // partition, number, id: a reader got it
)

// hubChild lists all events and then publishes and reads until it is killed.
func hubChild(ctx context.Context, dir, life string) error {
	b, err := brokertest.Open(ctx, vfs.OS(dir), queueserver.Options{})
	if err != nil {
		return err
	}
	// A partition keeps the last MiB, so that a kill may hit retention as well.
	_, err = b.CreateHub(ctx, entity.Hub{Name: hubName, PartitionCount: hubPartitions, MaxPartitionSizeInMegabytes: 1})
	if err != nil && !errors.Is(err, broker.ErrExists) {
		return err
	}
	for p := range hubPartitions {
		if err := listEvents(ctx, b.Broker, p); err != nil {
			return err
		}
	}
	say(saysReady)
	errs := make(chan error)
	for i := range 4 {
		go func() { errs <- publish(b.Broker, fmt.Sprint(life, ".", i)) }() // ends with the process
	}
	for p := range hubPartitions {
		go func() { errs <- watchEvents(ctx, b.Broker, p) }() // ends with the process
	}
	return <-errs
}

func partitionAddress(p int) string { return fmt.Sprintf("%s/Partitions/%d", hubName, p) }

func readerAddress(p int) string {
	return fmt.Sprintf("%s/ConsumerGroups/$Default/Partitions/%d", hubName, p)
}

// listEvents says which events a partition has.
func listEvents(ctx context.Context, b *broker.Broker, p int) error {
	info, err := b.PartitionInfo(ctx, hubName, fmt.Sprint(p))
	if err != nil {
		return err
	}
	say(saysFirst, fmt.Sprint(p), fmt.Sprint(info.First), fmt.Sprint(info.Last))
	return readEvents(ctx, b, p, stream.Earliest(), saysEvent, info.Last)
}

// watchEvents says what a reader gets that begins at some time.
func watchEvents(ctx context.Context, b *broker.Broker, p int) error {
	from := stream.Latest()
	if rand.IntN(2) == 0 {
		from = stream.Earliest()
	}
	return readEvents(ctx, b, p, from, saysSeen, 1<<62)
}

// readEvents reads a partition up to the event last.
func readEvents(ctx context.Context, b *broker.Broker, p int, from stream.Start, what string, last stream.SeqNo) error {
	if last < 0 {
		return nil
	}
	r, err := b.OpenEventReader(ctx, readerAddress(p), broker.EventReaderOptions{From: from})
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		batches, err := r.Next(ctx, 64<<10)
		if err != nil {
			return err
		}
		for i := range batches {
			id, _, _ := strings.Cut(string(batches[i].Raw), "|")
			if string(batches[i].Raw) != eventBody(id, batches[i].Count) {
				return fmt.Errorf("partition %d, event %d: batch %q is not as it was sent", p, batches[i].First, id)
			}
			for k := range batches[i].Count {
				seq := batches[i].First + stream.SeqNo(k)
				say(what, fmt.Sprint(p), fmt.Sprint(seq), fmt.Sprintf("%s/%d", id, k))
				if seq >= last {
					return nil
				}
			}
		}
	}
}

// publish sends batches to the partitions, one after the other.
func publish(b *broker.Broker, name string) error {
	var to [hubPartitions]*broker.Publisher
	for p := range to {
		var err error
		if to[p], err = b.OpenPublisher(partitionAddress(p)); err != nil {
			return err
		}
	}
	for k := 0; ; k++ {
		p, count := rand.IntN(hubPartitions), 1+rand.IntN(4)
		id := fmt.Sprint(name, ".", k)
		answer := make(chan error, 1)
		to[p].Publish(broker.Events{Raw: []byte(eventBody(id, count)), Count: count}, func(err error) { answer <- err })
		if err := <-answer; err != nil {
			return err
		}
		say(saysSent, fmt.Sprint(p), id, fmt.Sprint(count))
	}
}

// eventBody is what a batch of that id and that many events consists of.
func eventBody(id string, count int) string {
	return id + "|" + strings.Repeat(string(bodyOf(id)), 2*count)
}
