// SPDX-License-Identifier: Apache-2.0

// Command sdk is one instance of the processor of the Event Hubs SDK for Go, for the
// comparison in bench/processors.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

type settings struct {
	Connection, Hub, Store, Name string
	Greedy                       bool
}

const interval = time.Second

var saying sync.Mutex

func say(words ...any) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(words...)
}

func main() {
	var s settings
	if err := json.Unmarshal([]byte(os.Getenv("TRIAGEMQ_BENCH_INSTANCE")), &s); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	if err := run(ctx, s); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, s settings) error {
	consumer, err := azeventhubs.NewConsumerClientFromConnectionString(s.Connection, s.Hub, azeventhubs.DefaultConsumerGroup, nil)
	if err != nil {
		return err
	}
	defer consumer.Close(context.WithoutCancel(ctx))
	earliest := true
	strategy := azeventhubs.ProcessorStrategyBalanced
	if s.Greedy {
		strategy = azeventhubs.ProcessorStrategyGreedy
	}
	p, err := azeventhubs.NewProcessor(consumer, store(s.Store), &azeventhubs.ProcessorOptions{
		LoadBalancingStrategy: strategy, UpdateInterval: interval, PartitionExpirationDuration: 6 * interval,
		StartPositions: azeventhubs.StartPositions{Default: azeventhubs.StartPosition{Earliest: &earliest}},
	})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for c := p.NextPartitionClient(ctx); c != nil; c = p.NextPartitionClient(ctx) {
			wg.Go(func() { handle(ctx, c) })
		}
	})
	say("up")
	return p.Run(ctx)
}

// handle saves a checkpoint once a second, as our processor does.
func handle(ctx context.Context, c *azeventhubs.ProcessorPartitionClient) {
	defer c.Close(context.WithoutCancel(ctx))
	say("own", c.PartitionID())
	defer say("lost", c.PartitionID())
	var last *azeventhubs.ReceivedEventData
	saved := time.Now()
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		events, err := c.ReceiveEvents(short, 100, nil)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if len(events) > 0 {
			last = events[len(events)-1]
			say("event", c.PartitionID(), events[0].SequenceNumber, last.SequenceNumber)
		}
		if last != nil && time.Since(saved) > time.Second {
			if err := c.UpdateCheckpoint(ctx, last, nil); err != nil {
				return
			}
			last, saved = nil, time.Now()
		}
	}
}

// store is the store that the parent serves.
type store string

type record struct {
	Partition, Owner, ETag string
	Modified               time.Time
	SeqNo                  int64
	Offset                 string
}

func (s store) ask(ctx context.Context, path string, in []record) ([]record, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(s)+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out []record
	return out, json.NewDecoder(resp.Body).Decode(&out)
}

func (s store) ListOwnership(ctx context.Context, namespace, hub, group string, _ *azeventhubs.ListOwnershipOptions) ([]azeventhubs.Ownership, error) {
	list, err := s.ask(ctx, "/owners", []record{})
	return owners(list, namespace, hub, group), err
}

func owners(list []record, namespace, hub, group string) []azeventhubs.Ownership {
	var out []azeventhubs.Ownership
	for _, r := range list {
		tag := azcore.ETag(r.ETag)
		out = append(out, azeventhubs.Ownership{
			FullyQualifiedNamespace: namespace, EventHubName: hub, ConsumerGroup: group,
			PartitionID: r.Partition, OwnerID: r.Owner, ETag: &tag, LastModifiedTime: r.Modified,
		})
	}
	return out
}

func (s store) ClaimOwnership(ctx context.Context, claims []azeventhubs.Ownership, _ *azeventhubs.ClaimOwnershipOptions) ([]azeventhubs.Ownership, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	var in []record
	for _, c := range claims {
		r := record{Partition: c.PartitionID, Owner: c.OwnerID}
		if c.ETag != nil {
			r.ETag = string(*c.ETag)
		}
		in = append(in, r)
	}
	won, err := s.ask(ctx, "/claim", in)
	return owners(won, claims[0].FullyQualifiedNamespace, claims[0].EventHubName, claims[0].ConsumerGroup), err
}

func (s store) ListCheckpoints(ctx context.Context, namespace, hub, group string, _ *azeventhubs.ListCheckpointsOptions) ([]azeventhubs.Checkpoint, error) {
	list, err := s.ask(ctx, "/checkpoints", []record{})
	var out []azeventhubs.Checkpoint
	for _, r := range list {
		out = append(out, azeventhubs.Checkpoint{
			FullyQualifiedNamespace: namespace, EventHubName: hub, ConsumerGroup: group,
			PartitionID: r.Partition, SequenceNumber: &r.SeqNo, Offset: &r.Offset,
		})
	}
	return out, err
}

func (s store) SetCheckpoint(ctx context.Context, c azeventhubs.Checkpoint, _ *azeventhubs.SetCheckpointOptions) error {
	_, err := s.ask(ctx, "/set", []record{{Partition: c.PartitionID, SeqNo: *c.SequenceNumber, Offset: *c.Offset}})
	return err
}
