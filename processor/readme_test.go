// SPDX-License-Identifier: Apache-2.0

//go:build unix

package processor_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

// The README's event processor handles an event, and stops when it is interrupted.
func TestREADMEProgram(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)an event processor</summary>\n\n```go\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("the README has no event processor")
	}
	b := triagetest.Start(t, "hubs: [{name: clicks, partitionCount: 4}]")
	dir, err := os.MkdirTemp(".", "readme-") // in the module, which it imports
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	source := strings.ReplaceAll(string(block[1]), "sb://localhost", "sb://127.0.0.1:"+b.Port())
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s, err := b.Client().OpenSender(t.Context(), "clicks/Partitions/0", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), &client.Message{Body: []byte("hello")}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "clicks/0/0 hello\n" {
		t.Errorf("the program said %q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
