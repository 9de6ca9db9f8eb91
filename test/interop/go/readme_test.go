// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The README's program for the Go SDK works unchanged, except for the port.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n(package main.*?)```").FindStringSubmatch(string(text))
	if block == nil || !strings.Contains(block[1], "Endpoint=sb://localhost;") {
		t.Fatal("the README has no program in Go that connects to localhost")
	}
	ctx := deadline(t)
	if _, err := administer(t, shared.SecureConnection()).CreateQueue(ctx, "orders", nil); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(".", "readme-") // where the module of the SDK is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := strings.Replace(block[1], "sb://localhost;", "sb://localhost:"+shared.Port+";", 1)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, "go", "run", "./"+dir).CombinedOutput()
	var want strings.Builder
	for _, priority := range []string{"High", "Low"} {
		for i := range 10 {
			fmt.Fprintf(&want, "%s %d\n", priority, i)
		}
	}
	if err != nil || string(out) != want.String() {
		t.Errorf("it printed\n%s%v, want\n%s", out, err, want.String())
	}
}
