// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/examples/process"
)

// broker is the broker of the demo, with the writer for the demo's output.
type broker struct {
	process.Broker
	out io.Writer
}

// dial connects a client. The function it returns says goodbye.
func (b *broker) dial(ctx context.Context) (*client.Client, func(), error) {
	c, err := client.Dial(ctx, b.ConnectionString(), nil)
	if err != nil {
		return nil, nil, err
	}
	return c, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.Shutdown(ctx) // the broker may have closed first
	}, nil
}

// run runs a command of the binary as a user would, and shows it.
func (b *broker) run(ctx context.Context, args ...string) error {
	dir, err := process.Module()
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "\n   $ triagemq %s\n", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, b.Binary, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TRIAGEMQ_CONNECTION_STRING="+b.ConnectionString())
	text, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(text)) {
		fmt.Fprint(b.out, "   "+line)
	}
	fmt.Fprintln(b.out)
	return err
}
