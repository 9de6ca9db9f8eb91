// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

// TestMain runs the program itself instead of the tests, for tests that need processes.
func TestMain(m *testing.M) {
	if os.Getenv("HOMESECURITY_TEST_RUN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// startProcess runs a command of the program. It is killed when the test ends.
func startProcess(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append(args, "--child")...)
	cmd.Env = append(os.Environ(), "HOMESECURITY_TEST_RUN=1")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if _, err := cmd.StdinPipe(); err != nil { // it ends with us
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%v printed\n%s", args, said.String())
		}
	})
	return cmd
}

// expected is what must be in the document of a home: values by sensor, and counts.
type expected struct {
	values          map[string]string
	changes, alarms int64
}

// add counts a reading, in another way than the program does.
func (e *expected) add(r reading) {
	old, known := e.values[r.Sensor]
	if known && old != r.Value {
		e.changes++
	}
	if old != r.Value && (r.Value == "smoke" || r.Value == "leak") {
		e.alarms++
	}
	e.values[r.Sensor] = r.Value
}

// fault tells what is different in a document; "" is nothing.
func (e *expected) fault(a aggregate) string {
	values := map[string]string{}
	for _, s := range a.Sensors {
		values[s.Name] = s.Value
	}
	if got, want := fmt.Sprint(values, a.Changes, a.Alarms), fmt.Sprint(e.values, e.changes, e.alarms); got != want {
		return fmt.Sprintf("home %d has %s, want %s", a.Home, got, want)
	}
	return ""
}

// Two instances, of which one is killed in the middle, write what happened, and nothing twice.
func TestDocumentsAreRightAfterAnInstanceWasKilled(t *testing.T) {
	const homes, rounds = 60, 40
	b := triagetest.Start(t, string(definitions))
	dir := t.TempDir()
	instance := func(name string) *exec.Cmd {
		return startProcess(t, "instance", "--broker", b.ConnectionString(), "--blobs", dir, "--name", name)
	}
	first := instance("first")
	instance("second")
	ask, err := askGroup(b.ConnectionString())
	if err != nil {
		t.Fatal(err)
	}
	waitForOwners(t, ask, map[string]int{"first": 8, "second": 8})

	c := b.Client()
	s, err := c.OpenSender(t.Context(), hubName, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]expected, homes)
	for round := range rounds {
		if round == rounds/2 {
			waitFor(t, "something is stored of each home", func() string {
				for home := range homes {
					if a, _, err := dirStore(dir).load(t.Context(), home); err != nil || len(a.Sensors) == 0 {
						return fmt.Sprintf("home %d: %v", home, err)
					}
				}
				return ""
			})
		}
		report(t, s, want, round)
		if round == rounds/2 {
			if err := first.Process.Kill(); err != nil { // at work, and before its next checkpoint
				t.Fatal(err)
			}
		}
	}
	waitForOwners(t, ask, map[string]int{"second": 16})
	waitFor(t, "documents are right", func() string {
		for home := range homes {
			a, _, err := dirStore(dir).load(t.Context(), home)
			if err != nil {
				return err.Error()
			}
			if fault := want[home].fault(a); fault != "" {
				return fault
			}
		}
		return ""
	})
}

// waitForOwners waits until the instances have so many partitions.
func waitForOwners(t *testing.T, ask func(context.Context) (groupState, error), want map[string]int) {
	t.Helper()
	waitFor(t, "partitions have owners", func() string {
		state, err := ask(t.Context())
		if err != nil {
			return err.Error()
		}
		got := map[string]int{}
		for _, p := range state.Partitions {
			got[p.Owner]++
		}
		if !maps.Equal(got, want) {
			return fmt.Sprintf("they have %v, want %v", got, want)
		}
		return ""
	})
}

// report publishes the readings of a round, many homes at a time, and what is not a reading.
func report(t *testing.T, s *client.Sender, want []expected, round int) {
	t.Helper()
	var wg sync.WaitGroup
	for home := range want {
		e := &want[home]
		if e.values == nil {
			e.values = map[string]string{}
		}
		var batch []*client.Message
		for i, name := range []string{"door", "smoke", "water"} {
			r := read(home, name, (round+home)%(i+2) == 0)
			e.add(r)
			m, err := r.event()
			if err != nil {
				t.Fatal(err)
			}
			batch = append(batch, m)
		}
		if home == 0 && round%10 == 0 {
			batch = append(batch, &client.Message{PartitionKey: homeKey(home), Body: []byte("not a reading")})
		}
		wg.Go(func() {
			if err := s.SendBatch(t.Context(), batch); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// waitFor waits until a fault is gone.
func waitFor(t *testing.T, what string, fault func() string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; <-time.After(50 * time.Millisecond) {
		text := fault()
		if text == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("never: %s: %s", what, text)
		}
	}
}
