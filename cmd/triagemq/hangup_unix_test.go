// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A broker that is told to stop takes its time, in which SIGHUP may come: from
// `key rotate`, which still finds it, or from a program that renews a certificate. It must not
// end the process in the middle of its last answers.
func TestHangupWhileStopping(t *testing.T) {
	p := serveOn(t, t.TempDir(), "--dev")
	address := p.wait(&p.out, listening)
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// A request whose end does not come keeps the broker from ending at once.
	fmt.Fprintf(c, "PUT /api/v1/queues/slow HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", address)
	p.signal(syscall.SIGTERM)
	p.wait(&p.err, "msg=stopping")
	for running := true; running; {
		_ = p.cmd.Process.Signal(syscall.SIGHUP) // it may have ended
		select {
		case <-p.done:
			running = false
		case <-time.After(10 * time.Millisecond):
		}
	}
	if code := p.code(); code != 0 {
		t.Errorf("%v\n%s", p.cmd.ProcessState, p.err.String())
	}
}

// A key that is changed while a broker starts, which may take long with a large store, is
// changed for that broker too, whether or not the command could find it.
func TestKeyIsRotatedDuringAStart(t *testing.T) {
	const port = `listening on 127\.0\.0\.1(:\d+)`
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	first := serveOn(t, data)
	old := first.wait(&first.out, connection)
	if code := first.stop(); code != 0 {
		t.Fatalf("code %d: %s", code, first.err.String())
	}

	// The broker waits for its certificate, which it reads to check it, and again when
	// it has read its keys.
	certFile, keyFile := writeCertificate(t, dir, 1)
	text, err := os.ReadFile(certFile)
	if err != nil {
		t.Fatal(err)
	}
	pipe := func() {
		if err := errors.Join(os.Remove(certFile), syscall.Mkfifo(certFile, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	pipe()
	p := serveOn(t, data, "--tls-cert", certFile, "--tls-key", keyFile)
	give := func(before func()) {
		f, err := os.OpenFile(certFile, os.O_WRONLY, 0) // returns when it is being read
		if err != nil {
			t.Fatal(err)
		}
		pipe() // for the next time: who reads now has the old one
		before()
		_, err = f.Write(text)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	give(func() {})
	give(func() { command(t, "key", "rotate", "--data", data, "--both") })
	p.wait(&p.out, "TriageMQ is ready")
	p.wait(&p.err, "keys were (?:changed|read again)")
	if code, _, complaint := try(t, "queue", "list", "--connection-string", strings.Replace(old, first.wait(&first.out, port), p.wait(&p.out, port), 1)); code == 0 || !strings.Contains(complaint, "check the key") {
		t.Errorf("with the old key: code %d, %s", code, complaint)
	}
}
