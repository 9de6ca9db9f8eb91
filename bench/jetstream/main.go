// SPDX-License-Identifier: Apache-2.0

// Command jetstream puts the load of "triagemq bench --hub" on NATS JetStream: events in
// batches to as many subjects as a hub has partitions, and a reader for each. Server and
// clients share this process, as with "bench --hub --embedded".
//
// JetStream stores messages one by one. With -batch 1 each event is a message. With a
// larger one so many events are one message, which its users would have to take apart
// themselves: what it takes in then is the most that it can be given credit for.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

type settings struct {
	dir        string
	sync       bool
	partitions int
	size       int
	batch      int
	window     int
	duration   time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.dir, "dir", os.TempDir(), "directory for the store, which is removed afterwards")
	flag.BoolVar(&s.sync, "sync", false, "sync each write before it is acknowledged (sync_interval: always)")
	flag.IntVar(&s.partitions, "partitions", 16, "subjects, each with a reader")
	flag.IntVar(&s.size, "size", 256, "bytes of an event")
	flag.IntVar(&s.batch, "batch", 1, "events in a message")
	flag.IntVar(&s.window, "window", 1000, "messages that may wait for their acknowledgement, for each of four senders")
	flag.DurationVar(&s.duration, "duration", 10*time.Second, "how long to send")
	flag.Parse()
	if err := run(s); err != nil {
		log.Fatal(err)
	}
}

func run(s settings) error {
	dir, err := os.MkdirTemp(s.dir, "jetstream-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, SyncAlways: s.sync, NoSigs: true,
	})
	if err != nil {
		return err
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(10 * time.Second) {
		return fmt.Errorf("the server does not start")
	}
	return measure(s, srv.ClientURL())
}

func measure(s settings, url string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	js, closeReader, err := connect(url, s.window)
	if err != nil {
		return err
	}
	defer closeReader()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "events", Subjects: []string{"events.*"}, Storage: jetstream.FileStorage})
	if err != nil {
		return err
	}
	var in, out atomic.Uint64
	for p := range s.partitions {
		c, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{fmt.Sprintf("events.%d", p)}})
		if err != nil {
			return err
		}
		reading, err := c.Consume(func(jetstream.Msg) { out.Add(uint64(s.batch)) }, jetstream.PullMaxMessages(5000))
		if err != nil {
			return err
		}
		defer reading.Stop()
	}
	began := time.Now()
	var wg sync.WaitGroup
	errs := make(chan error, senders)
	for i := range senders {
		wg.Go(func() { errs <- send(ctx, s, url, i, &in) })
	}
	wg.Wait()
	took := time.Since(began)
	for range senders {
		if err := <-errs; err != nil {
			return err
		}
	}
	sent := in.Load()
	for last, at := out.Load(), time.Now(); out.Load() < sent && time.Since(at) < 5*time.Second; {
		time.Sleep(time.Millisecond)
		if n := out.Load(); n != last {
			last, at = n, time.Now()
		}
	}
	all := time.Since(began)
	name := "default sync"
	if s.sync {
		name = "sync always"
	}
	fmt.Printf("jetstream, %s, %d subjects, %d bytes, %d events in a message\n  in %.0f/s, out %.0f/s (%d and %d events)\n",
		name, s.partitions, s.size, s.batch, float64(sent)/took.Seconds(), float64(out.Load())/all.Seconds(), sent, out.Load())
	return nil
}

const senders = 4

func connect(url string, window int) (jetstream.JetStream, func(), error) {
	nc, err := nats.Connect(url)
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(window))
	return js, nc.Close, err
}

// send publishes to the subjects in turns and waits for all acknowledgements.
func send(ctx context.Context, s settings, url string, turn int, in *atomic.Uint64) error {
	js, closeSender, err := connect(url, s.window)
	if err != nil {
		return err
	}
	defer closeSender()
	body := make([]byte, s.size*s.batch)
	n := uint64(0)
	for until := time.Now().Add(s.duration); ; turn++ {
		if n%64 == 0 && !time.Now().Before(until) {
			break
		}
		if _, err := js.PublishAsync(fmt.Sprintf("events.%d", turn%s.partitions), body, jetstream.WithStallWait(time.Minute)); err != nil {
			return err
		}
		n++
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(time.Minute):
		return fmt.Errorf("acknowledgements do not come")
	case <-ctx.Done():
		return ctx.Err()
	}
	in.Add(n * uint64(s.batch))
	return nil
}
