// SPDX-License-Identifier: Apache-2.0

package running

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// StartAzurite runs the blob service of Azurite for one test and returns its
// connection string. It is installed with the packages of the suite for JavaScript.
func StartAzurite(t *testing.T) string {
	t.Helper()
	connection, err := startAzurite(t)
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return connection
}

func startAzurite(t *testing.T) (string, error) {
	top, err := repository()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(top, "test", "interop", "js")
	if out, err := exec.Command(filepath.Join(dir, "install.sh")).CombinedOutput(); err != nil {
		return "", fmt.Errorf("install Azurite: %w\n%s", err, out)
	}
	cmd := exec.Command("node", "azurite.mjs")
	cmd.Dir = dir
	var problems strings.Builder
	cmd.Stderr = &problems
	if _, err := cmd.StdinPipe(); err != nil { // Azurite ends with it, and so with us
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start Azurite: %w", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		return "", fmt.Errorf("start Azurite: %w\n%s", err, problems.String())
	}
	return strings.TrimSpace(line), nil
}
