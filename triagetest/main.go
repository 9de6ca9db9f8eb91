// SPDX-License-Identifier: Apache-2.0

package triagetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/server"
	"github.com/triagemq/triagemq/internal/vfs"
)

// Main runs the tests of a package beside one broker, and returns the exit code. It is
// for Examples, which have no test that a broker could live as long as. The connection
// string is set before anything runs.
//
//	func TestMain(m *testing.M) { os.Exit(triagetest.Main(m, "queues: [{name: orders}]", &connectionString)) }
func Main(m *testing.M, yaml string, connectionString *string) int {
	code, err := runBeside(m, yaml, connectionString)
	if err != nil {
		fmt.Fprintln(os.Stderr, "triagetest:", err)
		return max(code, 1)
	}
	return code
}

func runBeside(m *testing.M, yaml string, address *string) (code int, err error) {
	cfg, err := config.Parse([]byte(yaml))
	if err != nil {
		return 0, err
	}
	var net network
	defer net.close()
	host, err := net.address()
	if err != nil {
		return 0, err
	}
	ready := make(chan struct{})
	ctx, stop := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { // waited for below
		done <- server.Run(ctx, settings(cfg, vfs.NewMem(), &net, ready), slog.New(slog.DiscardHandler))
	}()
	defer func() {
		stop(errStop)
		if e := <-done; e != nil && !errors.Is(e, errStop) {
			err = e
		}
	}()
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		return 0, err
	}
	*address = connectionString(host)
	return m.Run(), nil
}

// settings has a broker of this package run on a disk, and be reached through a network.
func settings(cfg config.Config, disk vfs.FS, net *network, ready chan<- struct{}) server.Config {
	cfg.Security.Dev = true
	cfg.Storage.SegmentSize = segmentSize
	cfg.Listeners = []string{}
	out := server.Config{Config: cfg, FS: disk, Ready: func(server.Ready) { close(ready) }}
	out.Opened = append(out.Opened, net.enter())
	return out
}
