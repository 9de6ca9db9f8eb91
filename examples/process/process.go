// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Broker is a process of the real binary, on a directory that outlives it. Binary
// and Data are required.
type Broker struct {
	Binary  string    // where Build puts it
	Data    string    // the directory of the store
	Address string    // host:port; kept when it starts again
	process *exec.Cmd // nil while none runs
}

// Module is the directory of this repository, inside which examples are run.
func Module() (string, error) {
	for dir, err := os.Getwd(); ; dir = filepath.Dir(dir) {
		if err != nil {
			return "", err
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("run this inside the repository")
		}
	}
}

// Build makes the binary.
func (b *Broker) Build(ctx context.Context) error {
	dir, err := Module()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", b.Binary, "./cmd/triagemq")
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, text)
	}
	return nil
}

// Start runs `triagemq serve` and waits until it listens. The first time the
// system picks the port.
func (b *Broker) Start(ctx context.Context) error {
	listen := b.Address
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	cmd := exec.CommandContext(ctx, b.Binary, "serve", "--dev", "--data", b.Data, "--listen", listen)
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
			b.Address = address
			go io.Copy(io.Discard, said) // ends with the process, which Kill waits for
			return nil
		}
	}
	b.Kill()
	return fmt.Errorf("the broker did not start:\n%s", complaints.String())
}

// Kill ends the broker as abruptly as it can be ended.
func (b *Broker) Kill() {
	if b.process != nil {
		_ = b.process.Process.Kill() // SIGKILL; it may have ended by itself
		_ = b.process.Wait()         // that it was killed is no news
		b.process = nil
	}
}

// ConnectionString is what clients connect with.
func (b *Broker) ConnectionString() string {
	return "Endpoint=sb://" + b.Address +
		";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
}
