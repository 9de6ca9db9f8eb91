// SPDX-License-Identifier: Apache-2.0

package admin_test

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

// connectionString leads to the broker that the Examples manage.
var connectionString string

func TestMain(m *testing.M) {
	code, err := runWithBroker(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runWithBroker(m *testing.M) (code int, err error) {
	cfg, err := config.Parse(nil)
	if err != nil {
		return 0, err
	}
	cfg.Listeners = []string{"127.0.0.1:0"}
	cfg.Security.Dev = true
	cfg.Storage.SegmentSize = 4 << 20

	ctx, stop := context.WithCancel(context.Background()) //nolint:forbidigo // TestMain is a main
	ready := make(chan server.Ready, 1)
	done := make(chan error, 1)
	go func() { // waited for below
		done <- server.Run(ctx, server.Config{
			Config: cfg, FS: vfs.NewMem(), Ready: func(r server.Ready) { ready <- r },
		}, slog.New(slog.DiscardHandler))
	}()
	defer func() {
		stop()
		if e := <-done; e != nil && !errors.Is(e, context.Canceled) {
			err = e
		}
	}()
	select {
	case r := <-ready:
		connectionString = "Endpoint=sb://" + r.Addresses[0] +
			";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
	case err := <-done:
		done <- err
		return 0, err
	}
	return m.Run(), nil
}
