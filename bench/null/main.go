// SPDX-License-Identifier: Apache-2.0

// Command null is an AMQP server that does as little as a server can: it takes
// every link, whatever its address, accepts what is sent and hands it to whoever
// receives, from one list in memory. With a directory it also appends each message
// to a journal, and syncs before it accepts. It has no queues, levels, locks,
// limits or errors, redelivers nothing and forgets everything: what a client
// reaches with it is the most that it could reach with any broker written the same
// way, and what it costs is the least.
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
