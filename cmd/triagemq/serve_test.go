// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/cli"
)

func TestServeRefusesNonsense(t *testing.T) {
	tests := []struct {
		args []string
		code int
		text string
	}{
		{[]string{"serve", "--fly"}, cli.ExitUsage, "unknown flag: --fly"},
		{[]string{"serve", "--config", "none.yaml"}, cli.ExitUsage, "none.yaml"},
		{[]string{"serve", "--listen", "nonsense"}, cli.ExitUsage, "is not host:port"},
		{[]string{"serve", "--data", t.TempDir(), "--listen", "0.0.0.0:0"}, cli.ExitFailed, "--insecure"},
		{[]string{"serve", "--dev", "--insecure", "--data", t.TempDir(), "--listen", "0.0.0.0:0"}, cli.ExitFailed, "--allow-remote"},
		{[]string{"serve", "--tls-cert", "a.pem"}, cli.ExitUsage, "certFile and keyFile are needed together"},
	}
	for _, tt := range tests {
		var out, err bytes.Buffer
		code := run(t.Context(), tt.args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &err})
		if code != tt.code || !strings.Contains(err.String(), tt.text) {
			t.Errorf("%v: code %d, %q, want %d and %q", tt.args, code, err.String(), tt.code, tt.text)
		}
	}
}

// stopOnWrite ends ctx when the broker says that it is ready.
type stopOnWrite struct {
	bytes.Buffer
	stop context.CancelFunc
}

func (w *stopOnWrite) Write(b []byte) (int, error) {
	defer w.stop()
	return w.Buffer.Write(b)
}

func TestServeStartsAndStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out := &stopOnWrite{stop: stop}
	var err bytes.Buffer
	code := run(ctx, []string{"serve", "--dev", "--data", t.TempDir(), "--listen", "127.0.0.1:0"}, cli.Streams{In: strings.NewReader(""), Out: out, Err: &err})
	if code != 0 || !strings.HasPrefix(out.String(), "TriageMQ is ready.") {
		t.Errorf("code %d\n%s\n%s", code, out.String(), err.String())
	}
}

// stopOnWarning ends ctx when the broker has warned.
type stopOnWarning struct {
	bytes.Buffer
	stop context.CancelFunc
}

func (w *stopOnWarning) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("WARNING")) {
		defer w.stop()
	}
	return w.Buffer.Write(b)
}

// Development for other machines warns in red.
func TestServeWarnsOfRemoteDevelopment(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	t.Setenv("NO_COLOR", "")
	var out bytes.Buffer
	err := &stopOnWarning{stop: stop}
	code := run(ctx, []string{"serve", "--dev", "--allow-remote", "--data", t.TempDir(), "--listen", "127.0.0.1:0"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: err})
	if code != 0 || !strings.Contains(err.String(), "\x1b[31mWARNING: ") || !strings.Contains(out.String(), "Created a root key") {
		t.Errorf("code %d\n%s\n%s", code, out.String(), err.String())
	}
}
