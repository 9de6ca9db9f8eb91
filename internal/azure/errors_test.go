// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
)

// A client that leaves while its request is served is no error of ours.
func TestClientThatLeavesIsNoError(t *testing.T) {
	var log bytes.Buffer
	c := &Conn{svc: &Service{conditions: newTable(nil)}, log: slog.New(slog.NewTextHandler(&log, nil)), host: "ns.example"}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errGone) // as Closed does
	c.failed("q", fmt.Errorf("peek: %w", context.Cause(ctx)))
	if text := log.String(); text != "" {
		t.Errorf("the log says %q, want nothing", text)
	}
}
