// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/config"
)

// reloads are what SIGHUP brings a broker.
type reloads struct {
	changes chan config.Config // what the file says now
	again   chan struct{}      // keys and certificates are to be read again
}

// onHangup reads the file again at every SIGHUP and sends what is in it, until ctx
// ends. A file with faults is reported and changes nothing; then, and without a file,
// only keys and certificates are read again. A SIGHUP that comes later is ignored: it must
// not end a process that is stopping, or about to.
func (f serveFlags) onHangup(ctx context.Context, s cli.Streams) reloads {
	hangup := make(chan os.Signal, 1) // one that waits is enough: it will read what is newest
	signal.Notify(hangup, syscall.SIGHUP)
	r := reloads{make(chan config.Config), make(chan struct{})}
	go func() { // ends with ctx, which is the command's own
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
			}
			f.reload(ctx, r, s)
		}
	}()
	return r
}

func (f serveFlags) reload(ctx context.Context, r reloads, s cli.Streams) {
	changes, again := r.changes, r.again
	var cfg config.Config
	if f.file == "" && f.emulator == "" {
		changes = nil
	} else {
		var err error
		cfg, err = f.settings(os.LookupEnv)
		err = checkedProcess(cfg, err)
		if err != nil {
			fmt.Fprintf(s.Err, "triagemq: the file was read again and is not applied:\n%v\n", err)
			changes = nil
		}
	}
	if changes != nil {
		again = nil
	}
	select {
	case changes <- cfg:
	case again <- struct{}{}:
	case <-ctx.Done():
	}
}
