// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// workerVariable makes the test program a worker that runs one program, whose process
// number goes into the file.
const workerVariable = "TRIAGEMQ_TEST_WORKER"

func TestMain(m *testing.M) {
	if file := os.Getenv(workerVariable); file != "" {
		h := Handler{Command: []string{"/bin/sh", "-c", `echo $$ > "` + file + `"; exec sleep 1000`}}
		if err := h.Handle(context.Background(), task("")); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestProgramEndsWithAWorkerThatIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	w := exec.Command(os.Args[0])
	w.Env = append(os.Environ(), workerVariable+"="+file)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	until(t, "running", func() bool {
		data, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return pid > 0 && strings.HasSuffix(string(data), "\n")
	})
	if err := w.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = w.Wait() // it was killed
	until(t, "ended with its worker", func() bool { return members(t, pid) == "" })
}
