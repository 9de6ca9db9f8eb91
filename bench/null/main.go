// SPDX-License-Identifier: Apache-2.0

// Command null is an AMQP server that does as little as a server can: it
// accepts every link with any address, accepts what is sent and delivers it to
// any receiver, from one list in memory. With a directory it also appends each
// message to a journal, and syncs before it accepts. It has no queues, levels,
// locks, limits or errors, and neither redelivers nor stores anything. Its
// throughput is an upper bound for any broker written the same way, and its
// cost a lower bound.
//
//	go run ./bench/null -listen 127.0.0.1:5672 -data dir
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:5672", "`address` to listen on")
	data := flag.String("data", "", "`directory` of a journal; without one nothing is synced")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *listen, *data); err != nil {
		fmt.Fprintln(os.Stderr, "null:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, listen, data string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	f := new(fifo)
	if data != "" {
		run, err := f.openJournal(data)
		if err != nil {
			return err
		}
		running.Go(func() { cancel(run(ctx)) })
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	fmt.Println("listening on", l.Addr())
	for {
		nc, err := l.Accept()
		if err != nil {
			break
		}
		running.Go(func() {
			defer context.AfterFunc(ctx, func() { nc.Close() })()
			newConn(nc, f).serve()
		})
	}
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
