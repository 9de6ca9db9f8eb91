// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

// deadline ends a demo that hangs. Building, which a cold cache makes slow, is not
// part of it.
const deadline = 45 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := demo(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo runs the demo.
func demo(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "triagemq-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // the demo's own, and empty of value when it ends

	b := &broker{out: out}
	b.Binary, b.Data = filepath.Join(dir, "triagemq"), filepath.Join(dir, "data")
	if err := b.Build(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	if err := b.Start(ctx); err != nil {
		return err
	}
	defer b.Kill()
	fmt.Fprintf(out, "A broker is running at %s, with an empty store.\n", b.Address)

	for _, chapter := range []func(context.Context, *broker) error{pattern, plainQueue, crash, events} {
		if err := chapter(ctx, b); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "\nThat is all. Everything was cleaned up.")
	return nil
}
