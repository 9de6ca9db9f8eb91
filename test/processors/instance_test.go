// SPDX-License-Identifier: Apache-2.0

//go:build linux

package processors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/processor"
	"github.com/triagemq/triagemq/processor/blobstore"
	"github.com/triagemq/triagemq/test/process"
)

// instanceVariable makes the test program one instance of a processor. It has
// instanceSettings as JSON.
const instanceVariable = "TRIAGEMQ_TEST_INSTANCE"

type instanceSettings struct {
	Connection, Hub, Group, Name string
	Blobs, Container             string // store mode, if they are not empty
	Slow                         time.Duration
}

func TestMain(m *testing.M) {
	if text := os.Getenv(instanceVariable); text != "" {
		if err := runInstance(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	process.Main(m)
}

var saying sync.Mutex

// say tells the test, a line each. The first two are those of the SDKs' programs, too:
//
//	claim PARTITION
//	event PARTITION NUMBER BODY
//	lost PARTITION
//	cancelled PARTITION
func say(words ...any) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(words...)
}

// runInstance is the whole program of an instance. It stops politely when its standard
// input ends.
func runInstance(text string) error {
	var s instanceSettings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	c, err := client.New(s.Connection, &client.Options{RetryTimeout: math.MaxInt64})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	p := &processor.Processor{
		Client: c, Hub: s.Hub, Group: s.Group, ID: s.Name, Batch: 5,
		Log: slog.New(slog.DiscardHandler), OnError: func(err error) { fmt.Fprintln(os.Stderr, err) },
		Handle: func(ctx context.Context, p *processor.Partition, events []*client.Received) error {
			for range 10 { // steps: what is left of them is not done while the process is suspended
				select {
				case <-time.After(s.Slow / 10):
				case <-ctx.Done():
					if errors.Is(context.Cause(ctx), processor.ErrLost) {
						say("cancelled", p.ID())
					}
					return context.Cause(ctx)
				}
			}
			for _, e := range events {
				say("event", p.ID(), int64(e.SeqNo), string(e.Body))
			}
			return nil
		},
	}
	if s.Blobs != "" {
		blobs, err := container.NewClientFromConnectionString(s.Blobs, s.Container, nil)
		if err != nil {
			return err
		}
		// Blobs have times in whole seconds.
		p.Store, p.Interval, p.Expiry = blobstore.New(blobs, nil), 300*time.Millisecond, 4*time.Second
	}
	go watch(ctx, p)
	return p.Run(ctx)
}

// watch tells which partitions the instance has.
func watch(ctx context.Context, p *processor.Processor) {
	had := map[string]bool{}
	for tick := time.Tick(10 * time.Millisecond); ctx.Err() == nil; <-tick {
		has := map[string]bool{}
		for _, s := range p.Status().Partitions {
			if has[s.ID] = true; !had[s.ID] {
				say("claim", s.ID)
			}
		}
		for id := range had {
			if !has[id] {
				say("lost", id)
			}
		}
		had = has
	}
}
