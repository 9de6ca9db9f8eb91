// SPDX-License-Identifier: Apache-2.0

//go:build linux

package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// azurite runs the blob service of Azurite, which is installed with the packages of the
// suite for JavaScript, and returns its connection string.
func azurite(t *testing.T) (string, error) {
	dir, err := filepath.Abs("../interop/js")
	if err != nil {
		return "", err
	}
	if out, err := exec.Command(filepath.Join(dir, "install.sh")).CombinedOutput(); err != nil {
		return "", fmt.Errorf("install Azurite: %w\n%s", err, out)
	}
	cmd := exec.Command("node", "azurite.mjs")
	cmd.Dir = dir
	if _, err := cmd.StdinPipe(); err != nil { // it ends with it, and so with us
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(line), err
}

// The documents may be in Azure Blob storage.
func TestBlobs(t *testing.T) {
	at, err := azurite(t)
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	unit := exec.Command("go", "test", "-count=1", "-run", "^TestBlobs$", "-v", "github.com/triagemq/triagemq/examples/homesecurity")
	unit.Env = append(os.Environ(), "HOMESECURITY_TEST_BLOBS="+at)
	if out, err := unit.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestBlobs") {
		t.Errorf("%v\n%s", err, out)
	}

	d := startDemo(t, "--blobs", at)
	for end := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
		var home struct {
			Sensors []struct{ Name, Value string }
		}
		resp, err := http.Get(d.page + "/api/homes/42")
		if err != nil {
			t.Fatal(err)
		}
		err = json.NewDecoder(resp.Body).Decode(&home)
		_ = resp.Body.Close() // it was read
		if err == nil && len(home.Sensors) == 4 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("home 42 is %+v, %v", home, err)
		}
	}
}
