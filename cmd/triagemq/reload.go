// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/triagemq/triagemq/internal/config"
)

// changes reads the file again at every SIGHUP and sends what is in it, until ctx
// ends. A file with faults is reported and changes nothing; without a file there is
// nothing to read.
func (f serveFlags) changes(ctx context.Context, s streams) <-chan config.Config {
	if f.file == "" && f.emulator == "" {
		return nil
	}
	hangup := make(chan os.Signal, 1) // one that waits is enough: it will read what is newest
	signal.Notify(hangup, syscall.SIGHUP)
	out := make(chan config.Config)
	go func() { // ends with ctx, which is the command's own
		defer signal.Stop(hangup)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
			}
			cfg, err := f.settings(os.LookupEnv)
			if err == nil {
				err = check(cfg)
			}
			if err != nil {
				fmt.Fprintf(s.err, "triagemq: the file was read again and is not applied:\n%v\n", err)
				continue
			}
			select {
			case out <- cfg:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
