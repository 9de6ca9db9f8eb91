// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The README's program for the Event Hubs SDK works unchanged, except for the port.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program := ""
	for _, block := range regexp.MustCompile("(?s)```go\n(package main.*?)```").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(block[1], "azeventhubs") {
			program = strings.Replace(block[1], "sb://localhost;", "sb://localhost:"+shared.Port+";", 1)
		}
	}
	if !strings.Contains(program, shared.Port) {
		t.Fatal("the README has no program in Go with the Event Hubs SDK that connects to localhost")
	}
	dir, err := os.MkdirTemp(".", "readme-") // where the module of the SDK is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "run", "./"+dir).CombinedOutput()
	if err != nil || string(out) != "0 hello\n" {
		t.Errorf("it printed %q, %v", out, err)
	}
}
