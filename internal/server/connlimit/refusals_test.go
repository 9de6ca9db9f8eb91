// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/access"
)

// Unauthenticated peers decide how often they are refused, and what their keys are called: neither
// may fill the log, or memory.
func TestRefusalsAreBounded(t *testing.T) {
	var log bytes.Buffer
	r := NewRefusals(slog.New(slog.NewTextHandler(&log, nil)))
	peer := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7}
	now := time.Unix(1e9, 0)
	lines := func() int { n := strings.Count(log.String(), "login refused"); log.Reset(); return n }

	for range 10 {
		r.note(now, peer, "shop", access.ErrSignature)
	}
	if n := lines(); n != 1 {
		t.Errorf("%d lines for one client, want 1", n)
	}
	for i := range 1000 {
		r.note(now.Add(time.Second), peer, fmt.Sprintf("%d%s", i, strings.Repeat("x", 10_000)), access.ErrMalformed)
	}
	if n := log.Len(); n > 100*300 {
		t.Errorf("%d bytes of log", n)
	}
	if n := lines(); n != refusalLines-1 {
		t.Errorf("%d lines for a thousand names, want %d", n, refusalLines-1)
	}
	r.note(now.Add(refusalsEvery), peer, "shop", &access.ExpiredError{At: now})
	if text := log.String(); !strings.Contains(text, "key=shop") || !strings.Contains(text, "untold=901") {
		t.Errorf("a minute later: %s", text)
	}
	if got := fmt.Sprint(r.Total()); got != "map[expired:1 malformed:1000 other:0 signature:10]" {
		t.Errorf("counted %s", got)
	}
}
