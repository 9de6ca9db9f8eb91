// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"cmp"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// The README's commands work one after the other against the broker of its first page,
// which has a queue called orders already.
func TestREADMECommands(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)## From the command line\n\n```sh\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("the README has no commands")
	}
	p := serveOn(t, t.TempDir(), "--dev")
	sh := exec.CommandContext(t.Context(), "sh", "-ec", `triagemq() { "$BINARY" "$@"; }`+"\n"+string(block[1]))
	sh.Dir = t.TempDir()
	sh.Env = append(os.Environ(), commandVariable+"=1", "BINARY="+cmp.Or(os.Getenv("TRIAGEMQ_BINARY"), os.Args[0]),
		"TRIAGEMQ_CONNECTION_STRING="+p.wait(&p.out, connection))
	if out, err := sh.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
