// SPDX-License-Identifier: Apache-2.0

//go:build linux

package processors

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// An instance is suspended in its handlers. The other takes over; when the first goes on,
// its handlers are cancelled and no checkpoint goes back.
func TestASuspendedInstanceIsReplacedAndFenced(t *testing.T) {
	t.Parallel()
	f := newFleet(t, free(t), 4)
	slow := func(s *instanceSettings) { s.Slow = 300 * time.Millisecond }
	a, b := f.ours("a", slow), f.ours("b", slow)
	f.until("two with two partitions each", func() bool { return f.owners(map[*instance]int{a: 2, b: 2}) })
	f.publish(40)
	f.until("both at work", func() bool { return a.count > 0 && b.count > 0 })
	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	f.until("b with all partitions", func() bool { return len(b.owns) == 4 })
	took := time.Since(began)
	if took > 15*time.Second {
		t.Errorf("the partitions of a silent instance moved after %v, want at most about ten seconds", took)
	}
	f.until("all events handled", f.all)
	f.untilSaved(39)
	before := f.checkpoints()
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	f.until("two with two partitions each again", func() bool { return f.owners(map[*instance]int{a: 2, b: 2}) })
	for p, n := range f.checkpoints() {
		if n < before[p] {
			t.Errorf("checkpoint of partition %s went back from %d to %d", p, before[p], n)
		}
	}
	f.publish(5)
	f.until("all events handled", f.all)
	f.mu.Lock()
	again := 0
	for _, n := range f.seen {
		again += n - 1
	}
	cancelled := f.cancelled
	f.mu.Unlock()
	// At most what lay behind the last checkpoint: a second's worth, in two partitions.
	if again > 2*30 {
		t.Errorf("%d events were handled again", again)
	}
	if cancelled == 0 {
		t.Error("no handler of the suspended instance was cancelled")
	}
	t.Logf("replaced after %v, %d handlers were cancelled, %d events handled again", took.Round(time.Millisecond), cancelled, again)
	f.stop(a)
	f.stop(b)
}

// The broker is killed at several moments while partitions move, and comes back.
func TestABrokerThatIsKilledWhilePartitionsMove(t *testing.T) {
	t.Parallel()
	f := newFleet(t, free(t), 8)
	slow := func(s *instanceSettings) { s.Slow = 50 * time.Millisecond }
	a := f.ours("a", slow)
	f.publish(20)
	f.until("one with all partitions", func() bool { return f.owners(map[*instance]int{a: 8}) })
	for _, after := range []time.Duration{150, 210, 230, 260} {
		f.publish(20)
		b := f.ours("b", slow)
		<-time.After(after * time.Millisecond)
		f.broker.Kill()
		f.boot()
		f.publish(10)
		f.until("two with four partitions each", func() bool { return f.owners(map[*instance]int{a: 4, b: 4}) })
		f.until("all events handled", f.all)
		f.publish(20)
		f.stop(b)
		f.until("one with all partitions", func() bool { return f.owners(map[*instance]int{a: 8}) })
		f.until("all events handled", f.all)
	}
	f.stop(a)
	last := f.checkpoints()
	for p, n := range last {
		if n != 219 {
			t.Errorf("checkpoint of partition %s is %d, want 219", p, n)
		}
	}
}

// Our processor and those of the SDKs for Go and JavaScript share one hub, one group and
// one container of blobs.
func TestAMixedFleet(t *testing.T) {
	t.Parallel()
	// Without a port the SDKs agree on the names of blobs.
	f := newFleet(t, fmt.Sprintf("127.77.%d.%d:5672", os.Getpid()>>8&0xff, os.Getpid()&0xff), 6)
	blobs := startAzurite(t)
	c, err := container.NewClientFromConnectionString(blobs, "mixed", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	goProgram := buildGoProcessor(t)
	f.publish(10)

	ours := f.ours("ours", func(s *instanceSettings) { s.Blobs, s.Container = blobs, "mixed" })
	settings, err := json.Marshal(map[string]string{
		"Connection": f.connection(), "Hub": hubName, "Group": groupName, "Blobs": blobs, "Container": "mixed", "Strategy": "balanced",
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(goProgram)
	cmd.Env = append(os.Environ(), "TRIAGEMQ_TEST_PROCESSOR="+string(settings))
	golang := f.run("SDK for Go", cmd)
	cmd = exec.Command("node", "processor.mjs", f.connection(), hubName, blobs, "mixed", "balanced", groupName)
	cmd.Dir = jsDir
	js := f.run("SDK for JavaScript", cmd)

	f.until("three with two partitions each", func() bool {
		return f.owners(map[*instance]int{ours: 2, golang: 2, js: 2}) && f.all()
	})
	f.publish(10)
	f.until("all events handled", f.all)
	for _, i := range []*instance{ours, golang, js} {
		f.mu.Lock()
		n := i.count
		f.mu.Unlock()
		if n < 20 {
			t.Errorf("%s handled %d events, want its share", i.name, n)
		}
	}
	f.stop(js)
	f.until("two with three partitions each", func() bool { return f.owners(map[*instance]int{ours: 3, golang: 3}) })
	f.publish(10)
	f.until("all events handled", f.all)
	f.stop(golang)
	f.until("one with all", func() bool { return f.owners(map[*instance]int{ours: 6}) })
	f.publish(10)
	f.until("all events handled", f.all)
	f.stop(ours)
}

const jsDir = "../interop/js"

// startAzurite runs the blob service of Azurite and returns its connection string.
func startAzurite(t *testing.T) string {
	t.Helper()
	if out, err := exec.Command(jsDir + "/install.sh").CombinedOutput(); err != nil {
		unavailable(t, "install Azurite: %v\n%s", err, out)
	}
	cmd := exec.Command("node", "azurite.mjs")
	cmd.Dir = jsDir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if _, err := cmd.StdinPipe(); err != nil { // it ends with it
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		unavailable(t, "start Azurite: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		unavailable(t, "start Azurite: %v", err)
	}
	return strings.TrimSpace(line)
}

// buildGoProcessor builds the suite of the Event Hubs SDK for Go, whose program can be an
// instance of its processor.
func buildGoProcessor(t *testing.T) string {
	t.Helper()
	program := t.TempDir() + "/hubs.test"
	cmd := exec.Command("go", "test", "-c", "-o", program, "./hubs")
	cmd.Dir = "../interop/go"
	if out, err := cmd.CombinedOutput(); err != nil {
		unavailable(t, "build the processor of the SDK for Go: %v\n%s", err, out)
	}
	return program
}

// unavailable skips a test that needs what this machine does not have; CI has it.
func unavailable(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
