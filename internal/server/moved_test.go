// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// A shard that another owner has claimed is not served any more: its clients are told
// why, readiness and metrics say so, and the entities of other shards are served as
// before. The process ends when there is no shard left.
func TestShardThatMovedEndsAlone(t *testing.T) {
	cfg := Config{FS: vfs.NewMem()}
	cfg.Listeners = []string{"127.0.0.1:0"}
	cfg.Security.Dev = true
	cfg.Storage = config.Storage{Shards: 2, SegmentSize: 1 << 20}
	for i := range 8 {
		cfg.Queues = append(cfg.Queues, entity.Queue{Name: fmt.Sprint("q", i)})
	}
	up := make(chan Ready, 1)
	cfg.Ready = func(x Ready) { up <- x }
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	b, err := open(ctx, cfg.withDefaults(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- b.serve(ctx) }() // waited for below
	addr := (<-up).Addresses[0]
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	ask := func(method, path string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	send := func() (created, moved int) {
		t.Helper()
		for i := range 8 {
			switch status, text := ask("POST", fmt.Sprintf("/q%d/messages", i)); {
			case status == http.StatusCreated:
				created++
			case status == http.StatusServiceUnavailable && strings.Contains(text, "taken over"):
				moved++
			default:
				t.Errorf("send to q%d: %d %s", i, status, text)
			}
		}
		return created, moved
	}
	if created, _ := send(); created != 8 {
		t.Fatalf("%d of 8 queues take messages", created)
	}
	if _, _, err := b.wal.Claim(ctx, 1); err != nil {
		t.Fatal(err)
	}
	const degraded = "degraded: some entities have moved to another process; the others are served\n"
	for text := ""; text != degraded; _, text = ask("GET", "/readyz") {
		if text != "" && text != "ok\n" {
			t.Fatalf("readiness: %q", text)
		}
	}
	if created, moved := send(); created == 0 || moved == 0 {
		t.Errorf("%d queues take messages and %d have moved, want some of each", created, moved)
	}
	if _, text := ask("GET", "/metrics"); !regexp.MustCompile(`(?m)^triagemq_shard_moved{shard="1"} 1$`).MatchString(text) ||
		!regexp.MustCompile(`(?m)^triagemq_shard_moved{shard="0"} 0$`).MatchString(text) {
		t.Error("the metrics do not say that shard 1 has moved, and shard 0 has not")
	}
	if _, _, err := b.wal.Claim(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, queueserver.ErrMoved) {
		t.Errorf("after the last shard had moved the server ended with %v, want %v", err, queueserver.ErrMoved)
	}
}
