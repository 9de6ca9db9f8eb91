// SPDX-License-Identifier: Apache-2.0

// Command goamqp measures a broker through github.com/Azure/go-amqp, the client
// library of the Azure SDK for Go and of our own client package: messages sent,
// received and accepted for a time, each sender with a window of messages that
// wait for their answer.
//
//	go run ./bench/goamqp -url amqp://localhost:5672 -queue demo
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/load"
)

type settings struct {
	url, queue         string
	senders, receivers int
	size, levels       int
	window, credit     int
	duration           time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.url, "url", "amqp://localhost:5672", "`address` of the broker")
	flag.StringVar(&s.queue, "queue", "demo", "`name` of the queue")
	flag.IntVar(&s.senders, "senders", 4, "connections that send")
	flag.IntVar(&s.receivers, "receivers", 4, "connections that receive")
	flag.IntVar(&s.size, "size", 256, "`bytes` of a body")
	flag.IntVar(&s.levels, "levels", 10, "priority levels, used round robin")
	flag.IntVar(&s.window, "window", 250, "messages of a sender that may wait for their answer")
	flag.IntVar(&s.credit, "credit", 500, "link credit of a receiver")
	flag.DurationVar(&s.duration, "duration", 10*time.Second, "how long to send")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "goamqp:", err)
		os.Exit(1)
	}
}

// counters are shared by all connections.
type counters struct{ in, out atomic.Int64 }

// measure runs senders and receivers against each other. Receivers continue
// until everything that was accepted has arrived.
func measure(ctx context.Context, s settings) error {
	var n counters
	var senders, receivers sync.WaitGroup
	var failed atomic.Pointer[error]
	fail := func(err error) {
		if err != nil {
			failed.CompareAndSwap(nil, &err)
		}
	}
	draining, drained := context.WithCancel(ctx)
	defer drained()
	began, cpu := time.Now(), load.ProcessorTime()
	sending, cancel := context.WithTimeout(ctx, s.duration)
	defer cancel()
	for range s.receivers {
		receivers.Go(func() { fail(s.receive(draining, &n)) })
	}
	for range s.senders {
		senders.Go(func() { fail(s.send(ctx, sending, &n)) })
	}
	senders.Wait()
	in, took := n.in.Load(), time.Since(began)
	for last, since := n.out.Load(), time.Now(); n.out.Load() < in && time.Since(since) < 5*time.Second; {
		time.Sleep(time.Millisecond)
		if now := n.out.Load(); now != last {
			last, since = now, time.Now()
		}
	}
	out, tookOut, used := n.out.Load(), time.Since(began), load.ProcessorTime()-cpu
	drained()
	receivers.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	fmt.Printf("go-amqp, %d senders, %d receivers, %d bytes, %d levels, window %d, credit %d\n",
		s.senders, s.receivers, s.size, s.levels, s.window, s.credit)
	fmt.Printf("  in  %9.0f/s   %d in %v\n", float64(in)/took.Seconds(), in, took.Round(time.Millisecond))
	fmt.Printf("  out %9.0f/s   %d in %v, %v of the client's processor each\n",
		float64(out)/tookOut.Seconds(), out, tookOut.Round(time.Millisecond), used/time.Duration(max(1, out)))
	if out < in {
		fmt.Printf("  %d messages were accepted and not received\n", in-out)
	}
	return nil
}

// send keeps a window of messages under way until sending ends.
func (s settings) send(ctx, sending context.Context, n *counters) error {
	conn, session, err := connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer conn.Close()
	link, err := session.NewSender(ctx, s.queue, nil)
	if err != nil {
		return err
	}
	body := make([]byte, s.size)
	receipts := make(chan amqp.SendReceipt, s.window) // its capacity is the window
	var wg sync.WaitGroup
	var lost error
	wg.Go(func() {
		for r := range receipts {
			state, err := r.Wait(ctx)
			if _, ok := state.(*amqp.StateAccepted); ok {
				n.in.Add(1)
			} else if lost == nil {
				lost = fmt.Errorf("a message was not accepted: %v, %w", state, err)
			}
		}
	})
	for i := 0; sending.Err() == nil && err == nil; i++ {
		m := amqp.NewMessage(body)
		m.Header = &amqp.MessageHeader{Durable: true, Priority: uint8(i % s.levels)}
		var r amqp.SendReceipt
		if r, err = link.SendWithReceipt(ctx, m, nil); err == nil {
			receipts <- r
		}
	}
	close(receipts)
	wg.Wait()
	return errors.Join(err, lost)
}

// receive accepts what comes until ctx ends.
func (s settings) receive(ctx context.Context, n *counters) error {
	conn, session, err := connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer conn.Close()
	link, err := session.NewReceiver(ctx, s.queue, &amqp.ReceiverOptions{Credit: int32(s.credit)})
	if err != nil {
		return err
	}
	for {
		m, err := link.Receive(ctx, nil)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = link.AcceptMessage(ctx, m)
		}
		if err != nil {
			return err
		}
		n.out.Add(1)
	}
}

func connect(ctx context.Context, url string) (*amqp.Conn, *amqp.Session, error) {
	conn, err := amqp.Dial(ctx, url, &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()})
	if err != nil {
		return nil, nil, err
	}
	session, err := conn.NewSession(ctx, nil)
	return conn, session, err
}
