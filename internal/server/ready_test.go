// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// A full disk shows in /readyz, with status 200 because receiving goes on, and in metrics.
// When there is space again sends are accepted, and it does not show any more.
func TestFullDiskShows(t *testing.T) {
	r := run(t, nil)
	r.fs.SetSize(24 << 20)
	ctx := r.ctx()
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, method, "http://"+r.addr+path, strings.NewReader(body))
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
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	send := func() int {
		status, _ := ask("POST", "/q/messages", strings.Repeat("x", 200<<10))
		return status
	}
	sent := 0
	for ; send() == http.StatusCreated; sent++ {
		if status, text := ask("GET", "/readyz", ""); sent == 0 && (status != http.StatusOK || text != "ok\n") {
			t.Errorf("with space: %d %q, want ok", status, text)
		}
	}
	if sent == 0 {
		t.Fatal("nothing was taken")
	}
	const degraded = "degraded: the disk is full, senders are refused; receiving and settling go on\n"
	if status, text := ask("GET", "/readyz", ""); status != http.StatusOK || text != degraded {
		t.Errorf("on a full disk: %d %q, want 200 %q", status, text, degraded)
	}
	if status, text := ask("GET", "/healthz", ""); status != http.StatusOK || text != "ok\n" {
		t.Errorf("/healthz: %d %q, want ok: the process is fine", status, text)
	}
	_, text := ask("GET", "/metrics", "")
	for _, want := range []string{`(?m)^triagemq_disk_full 1$`, `(?m)^triagemq_disk_free_bytes [\d.e+]+$`} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("metrics without %s", want)
		}
	}
	if status, _ := ask("DELETE", "/q/messages/head?timeout=1", ""); status != http.StatusOK {
		t.Errorf("receive on a full disk: %d", status)
	}
	if status, text := ask("DELETE", "/api/v1/queues/q/messages", ""); status != http.StatusOK {
		t.Errorf("purge: %d %s", status, text)
	}
	for ready := ""; ready != "ok\n"; _, ready = ask("GET", "/readyz", "") {
		if ctx.Err() != nil {
			t.Fatal("it stays degraded")
		}
	}
	if status := send(); status != http.StatusCreated {
		t.Errorf("after the purge: %d, want sends to be accepted", status)
	}
}
