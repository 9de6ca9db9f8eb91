// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/triagemq/triagemq/client"
)

// broker is a process of the real binary, on a directory that outlives it.
type broker struct {
	binary  string
	data    string
	address string // host:port; kept when it starts again
	out     io.Writer
	process *exec.Cmd // nil while none runs
}

// module is the directory of this repository, from where the demo is run.
func module() (string, error) {
	for dir, err := os.Getwd(); ; dir = filepath.Dir(dir) {
		if err != nil {
			return "", err
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("run the demo inside the repository")
		}
	}
}

func (b *broker) build(ctx context.Context) error {
	dir, err := module()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", b.binary, "./cmd/triagemq")
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, text)
	}
	return nil
}

// start runs `triagemq serve` and waits until it listens. The first time the
// system picks the port.
func (b *broker) start(ctx context.Context) error {
	listen := b.address
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	cmd := exec.CommandContext(ctx, b.binary, "serve", "--dev", "--data", b.data, "--listen", listen)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	said, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the broker: %w", err)
	}
	b.process = cmd
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if _, address, ok := strings.Cut(lines.Text(), "listening on "); ok {
			b.address = address
			go io.Copy(io.Discard, said) // ends with the process, which kill waits for
			return nil
		}
	}
	b.kill()
	return fmt.Errorf("the broker did not start:\n%s", complaints.String())
}

// kill ends the broker as abruptly as it can be ended.
func (b *broker) kill() {
	if b.process != nil {
		_ = b.process.Process.Kill() // SIGKILL; it may have gone by itself
		_ = b.process.Wait()         // that it was killed is no news
		b.process = nil
	}
}

func (b *broker) connectionString() string {
	return "Endpoint=sb://" + b.address +
		";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
}

// dial connects a client. The function it returns says goodbye.
func (b *broker) dial(ctx context.Context) (*client.Client, func(), error) {
	c, err := client.Dial(ctx, b.connectionString(), nil)
	if err != nil {
		return nil, nil, err
	}
	return c, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.Close(ctx) // the broker may have gone first
	}, nil
}

// run runs a command of the binary as a user would, and shows it.
func (b *broker) run(ctx context.Context, args ...string) error {
	dir, err := module()
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "\n   $ triagemq %s\n", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, b.binary, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TRIAGEMQ_CONNECTION_STRING="+b.connectionString())
	text, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(text)) {
		fmt.Fprint(b.out, "   "+line)
	}
	fmt.Fprintln(b.out)
	return err
}
