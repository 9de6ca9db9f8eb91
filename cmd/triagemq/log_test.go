// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// Who is refused for a wrong key leaves a line in the log, with its address and the
// name of the key, and none with the key or the token; and it is counted.
func TestRefusedLoginsAreLogged(t *testing.T) {
	p := serveOn(t, t.TempDir())
	right := p.wait(&p.out, connection)
	const wrong = "bm8gc3VjaCBrZXkgYW55d2hlcmU="
	address := p.wait(&p.out, listening)
	by := func(name string) string {
		return strings.Replace(withKey(right, wrong), "RootManageSharedAccessKey", name, 1)
	}
	for range 3 {
		for _, args := range [][]string{
			{"queue", "list", "--connection-string", by("http")},
			{"send", "q", "--body", "x", "--connection-string", by("amqp")},
			{"send", "q", "--body", "x", "--connection-string", "amqp://plain:" + wrong + "@" + address},
		} {
			if code, _, _ := try(t, args...); code == 0 {
				t.Errorf("%v: it was accepted", args)
			}
		}
	}
	for _, key := range []string{"http", "amqp", "plain"} {
		line := regexp.MustCompile(`level=INFO msg="login refused" peer=127\.0\.0\.1:\d+ key=` + key + ` .*invalid signature`)
		p.wait(&p.err, line.String())
		if got := line.FindAllString(p.err.String(), -1); len(got) != 1 {
			t.Errorf("three refusals are %d lines, want one:\n%s", len(got), strings.Join(got, "\n"))
		}
	}
	if text := p.err.String(); strings.Contains(text, wrong) || strings.Contains(text, "sig=") || strings.Contains(text, "SharedAccessSignature") {
		t.Errorf("the log has the secret:\n%s", text)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("RootManageSharedAccessKey", keyOf(right))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`triagemq_logins_refused_total{reason="signature"} 9`, `triagemq_logins_refused_total{reason="expired"} 0`} {
		if !strings.Contains(string(metrics), want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// With -v each authenticated connection is logged, with the key and what the client
// calls itself.
func TestConnectionsAreLogged(t *testing.T) {
	p := serveOn(t, t.TempDir(), "-v")
	right := p.wait(&p.out, connection)
	command(t, "queue", "create", "q", "--connection-string", right)
	p.wait(&p.err, `level=DEBUG msg="client connected" peer=127\.0\.0\.1:\d+ key=RootManageSharedAccessKey client=\S*Go-http\S*`)
	command(t, "send", "q", "--body", "x", "--connection-string", right)
	p.wait(&p.err, `level=DEBUG msg="client connected" peer=127\.0\.0\.1:\d+ key=RootManageSharedAccessKey client=triagemq\S*`)
	address := p.wait(&p.out, listening)
	command(t, "send", "q", "--body", "x", "--connection-string", "amqp://RootManageSharedAccessKey:"+strings.ReplaceAll(keyOf(right), "/", "%2F")+"@"+address)
	p.wait(&p.err, `(?s)(client connected.*){3}`)
}

// A broker that is told to stop says so, for whom it waits and for how long, and that
// it has stopped.
func TestStoppingIsLogged(t *testing.T) {
	p := serveOn(t, t.TempDir())
	p.wait(&p.out, connection)
	p.signal(syscall.SIGTERM)
	if code := p.code(); code != 0 {
		t.Errorf("code %d", code)
	}
	p.wait(&p.err, `(?s)level=INFO msg=stopping cause=.* connections=0 grace=10s.*level=INFO msg="all connections are closed".*level=INFO msg=stopped`)
}
