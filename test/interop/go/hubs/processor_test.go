// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2/checkpoints"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/triagemq/triagemq/test/interop/go/running"
)

// processorVariable makes the test program one instance of a processor. It has
// processorSettings as JSON.
const processorVariable = "TRIAGEMQ_TEST_PROCESSOR"

type processorSettings struct {
	Connection, Hub, Blobs, Container string
	Group                             string // default: $Default
	Strategy                          azeventhubs.ProcessorStrategy
}

// runProcessor is the whole program of an instance. It tells its standard output what
// it does, a line each, and stops politely when its standard input ends:
//
//	claim PARTITION
//	event PARTITION NUMBER BODY
//	checkpoint PARTITION NUMBER
//	lost PARTITION
func runProcessor() {
	var s processorSettings
	if err := json.Unmarshal([]byte(os.Getenv(processorVariable)), &s); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	if err := process(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func process(ctx context.Context, s processorSettings) error {
	blobs, err := container.NewClientFromConnectionString(s.Blobs, s.Container, nil)
	if err != nil {
		return err
	}
	store, err := checkpoints.NewBlobStore(blobs, nil)
	if err != nil {
		return err
	}
	consumer, err := azeventhubs.NewConsumerClientFromConnectionString(s.Connection, s.Hub, cmp.Or(s.Group, all), nil)
	if err != nil {
		return err
	}
	defer closing(consumer.Close)
	p, err := azeventhubs.NewProcessor(consumer, store, &azeventhubs.ProcessorOptions{
		LoadBalancingStrategy: s.Strategy,
		UpdateInterval:        300 * time.Millisecond,
		// Blobs have times in whole seconds.
		PartitionExpirationDuration: 4 * time.Second,
		StartPositions:              azeventhubs.StartPositions{Default: earliest},
	})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for c := p.NextPartitionClient(ctx); c != nil; c = p.NextPartitionClient(ctx) {
			wg.Go(func() { processPartition(ctx, c) })
		}
	})
	return p.Run(ctx)
}

func processPartition(ctx context.Context, c *azeventhubs.ProcessorPartitionClient) {
	defer closing(c.Close)
	fmt.Println("claim", c.PartitionID())
	defer fmt.Println("lost", c.PartitionID())
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		events, err := c.ReceiveEvents(short, 100, nil)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return // lost, or stopped
		}
		for _, e := range events {
			fmt.Println("event", c.PartitionID(), e.SequenceNumber, string(e.Body))
		}
		if len(events) == 0 {
			continue
		}
		last := events[len(events)-1]
		if err := c.UpdateCheckpoint(ctx, last, nil); err != nil {
			return
		}
		fmt.Println("checkpoint", c.PartitionID(), last.SequenceNumber)
	}
}

// fleet is the instances of one processor, and what they have told.
type fleet struct {
	*hub
	settings processorSettings
	names    int

	changed chan struct{} // something was told
	mu      sync.Mutex
	alive   []*instance
	seen    map[string]int   // how often each body was
	done    map[string]int64 // checkpoint of each partition
}

type instance struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	out   sync.WaitGroup
	err   strings.Builder

	owns  map[string]bool  // guarded by the fleet's mu
	first map[string]int64 // number of the first event of each partition; guarded by the fleet's mu
}

func (f *fleet) start() *instance {
	f.t.Helper()
	settings, err := json.Marshal(f.settings)
	if err != nil {
		f.t.Fatal(err)
	}
	f.names++
	i := &instance{name: fmt.Sprint("instance ", f.names), owns: map[string]bool{}, first: map[string]int64{}}
	i.cmd = exec.Command(os.Args[0])
	i.cmd.Env = append(os.Environ(), processorVariable+"="+string(settings))
	i.cmd.Stderr = &i.err
	if i.stdin, err = i.cmd.StdinPipe(); err != nil {
		f.t.Fatal(err)
	}
	out, err := i.cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := i.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = i.cmd.Process.Kill() })
	f.mu.Lock()
	f.alive = append(f.alive, i)
	f.mu.Unlock()
	i.out.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			f.heard(i, lines.Text())
		}
	})
	return i
}

func (f *fleet) heard(i *instance, line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var what, partition, body string
	var number int64
	if _, err := fmt.Sscan(line, &what, &partition, &number, &body); err != nil && body == "" && what == "event" {
		f.t.Errorf("%s said %q", i.name, line)
	}
	switch what {
	case "claim":
		i.owns[partition] = true
	case "lost":
		delete(i.owns, partition)
	case "event":
		f.seen[body]++
		if _, ok := i.first[partition]; !ok {
			i.first[partition] = number
		}
	case "checkpoint":
		f.done[partition] = number
	default:
		f.t.Errorf("%s said %q", i.name, line)
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// kill ends an instance as a crash would; stop does it politely.
func (f *fleet) kill(i *instance) {
	_ = i.cmd.Process.Kill()
	f.ended(i)
}

func (f *fleet) stop(i *instance) {
	f.t.Helper()
	_ = i.stdin.Close()
	f.ended(i)
	if !i.cmd.ProcessState.Success() {
		f.t.Errorf("%s: %v\n%s", i.name, i.cmd.ProcessState, i.err.String())
	}
}

func (f *fleet) ended(i *instance) {
	i.out.Wait()
	_ = i.cmd.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, other := range f.alive {
		if other == i {
			f.alive = append(f.alive[:at:at], f.alive[at+1:]...)
		}
	}
}

// until waits until the fleet is as wanted.
func (f *fleet) until(what string, wanted func() bool) {
	f.t.Helper()
	for {
		f.mu.Lock()
		ok := wanted()
		f.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-f.changed:
		case <-f.ctx.Done():
			f.mu.Lock()
			defer f.mu.Unlock()
			var owns []string
			for _, i := range f.alive {
				owns = append(owns, fmt.Sprint(i.name, " ", i.owns, " ", i.err.String()))
			}
			f.t.Fatalf("not %s: %d events seen, %s", what, len(f.seen), strings.Join(owns, ", "))
		}
	}
}

// balanced says whether each instance owns its share and nothing is owned twice.
func (f *fleet) balanced(partitions int) bool {
	owned := map[string]bool{}
	for _, i := range f.alive {
		if len(i.owns) != partitions/len(f.alive) {
			return false
		}
		for p := range i.owns {
			owned[p] = true
		}
	}
	return len(owned) == partitions
}

// Three instances share six partitions; one is killed, one is added; all stop, and one
// resumes from the checkpoints of all.
func TestProcessors(t *testing.T) {
	t.Parallel()
	const partitions, round = 6, 10
	blobs := running.StartAzurite(t)
	for _, strategy := range []azeventhubs.ProcessorStrategy{azeventhubs.ProcessorStrategyBalanced, azeventhubs.ProcessorStrategyGreedy} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			h := open(t, string(strategy))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			h.ctx = ctx
			c, err := container.NewClientFromConnectionString(blobs, string(strategy), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Create(ctx, nil); err != nil {
				t.Fatal(err)
			}
			f := &fleet{
				hub:      h,
				settings: processorSettings{Connection: h.connection, Hub: h.name, Blobs: blobs, Container: string(strategy), Strategy: strategy},
				changed:  make(chan struct{}, 1), seen: map[string]int{}, done: map[string]int64{},
			}
			sent := 0
			publish := func() {
				for p := range partitions {
					h.send(toPartition(fmt.Sprint(p)), numbers(sent, sent+round)...)
					sent += round
				}
			}
			all := func() bool { return len(f.seen) == sent }

			publish()
			a, b, c3 := f.start(), f.start(), f.start()
			f.until("three with two partitions each", func() bool { return f.balanced(partitions) && all() })
			publish()
			f.kill(a) // in the middle of it
			publish()
			f.until("two with three partitions each", func() bool { return f.balanced(partitions) && all() })
			d := f.start()
			publish()
			f.until("three with two partitions each again", func() bool { return f.balanced(partitions) && all() })
			last := h.last()
			f.until("everything in checkpoints", func() bool {
				for p, number := range last {
					if f.done[p] != number {
						return false
					}
				}
				return true
			})
			for _, i := range []*instance{b, c3, d} {
				f.stop(i)
			}
			publish()
			e := f.start()
			f.until("one with all partitions", func() bool { return f.balanced(partitions) && all() })
			f.stop(e)
			for p, number := range last {
				if e.first[p] != number+1 {
					t.Errorf("partition %s was resumed at %d, its checkpoint was %d", p, e.first[p], number)
				}
			}
			again := 0
			for _, n := range f.seen {
				again += n - 1
			}
			t.Logf("%d events, %d of them seen again", sent, again)
		})
	}
}
