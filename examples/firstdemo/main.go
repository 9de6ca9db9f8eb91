// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// fillArg makes a process of this program the one that is killed.
const fillArg = "--fill"

func main() {
	ctx := context.Background()
	var err error
	if len(os.Args) == 3 && os.Args[1] == fillArg {
		err = fill(ctx, os.Args[2], os.Stdout)
	} else {
		err = demo(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "firstdemo:", err)
		os.Exit(1)
	}
}

// demo tells the story.
func demo(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "triagemq-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // the demo's own, and empty of value when it ends

	fmt.Fprintln(out, "1. A broker takes orders of mixed priorities, in a process of its own.")
	acknowledged, err := fillAndKill(ctx, dir, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "   %d orders were acknowledged when the process was killed (SIGKILL, no goodbye).\n\n", len(acknowledged))

	fmt.Fprintln(out, "2. Another process opens the same directory.")
	b, err := open(ctx, dir)
	if err != nil {
		return err
	}
	defer b.stop()
	rt, err := b.Runtime(ctx, queueName)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "   %d orders are waiting:", rt.Active)
	for _, l := range rt.Levels {
		fmt.Fprintf(out, "  %s %d", nameOf(l.Level), l.Ready)
	}
	fmt.Fprintln(out)

	fmt.Fprintln(out, "\n3. They are served, what matters first, and in each level the oldest first.")
	served, err := b.drain(ctx)
	if err != nil {
		return err
	}
	for i, m := range served {
		fmt.Fprintf(out, "   %2d.  %-10s %s\n", i+1, m.priority, m.text)
		delete(acknowledged, m.text)
	}
	if len(acknowledged) > 0 {
		return fmt.Errorf("%d acknowledged orders are lost", len(acknowledged))
	}
	fmt.Fprintln(out, "\nEvery order that was acknowledged has been served; none was lost in the crash.")
	return nil
}

// fillAndKill runs fill in a child, kills it after a while, and returns what it
// had acknowledged.
func fillAndKill(ctx context.Context, dir string, out io.Writer) (map[string]bool, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, fillArg, dir)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	acknowledged := make(map[string]bool)
	lines := bufio.NewReader(pipe)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // the child is dead
		}
		priority, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		acknowledged[text] = true
		fmt.Fprintf(out, "       %-10s %s\n", priority, text)
		if len(acknowledged) == enough {
			if err := cmd.Process.Kill(); err != nil {
				return nil, err
			}
		}
	}
	if err := cmd.Wait(); err == nil || len(acknowledged) < enough {
		return nil, errors.Join(errors.New("the child ended by itself"), err)
	}
	return acknowledged, nil
}
