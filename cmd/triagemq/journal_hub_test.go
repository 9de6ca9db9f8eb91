// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// hubStore makes a store with an event hub and returns the name of its log.
func hubStore(t *testing.T, dir string) (log string) {
	t.Helper()
	b, err := brokertest.Open(t.Context(), vfs.OS(dir), queueserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateHub(t.Context(), entity.Hub{Name: "clicks", PartitionCount: 1}); err != nil {
		t.Fatal(err)
	}
	to, err := b.OpenPublisher("clicks")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		done := make(chan error, 1)
		to.Publish(broker.Events{Raw: []byte("event number " + text), Count: 2}, func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if err := b.SetGroupCheckpoint(t.Context(), "clicks/ConsumerGroups/$Default", broker.Checkpoint{SeqNo: 1}); err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	logs, err := os.ReadDir(filepath.Join(dir, "hubs"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs are %v, %v", logs, err)
	}
	return logs[0].Name()
}

func TestJournalCommandsKnowHubs(t *testing.T) {
	dir := t.TempDir()
	log := hubStore(t, dir)
	out, errs, code := journalRun(t, dir, "verify")
	if code != 0 || strings.Count(out, "no damage") != 2 || !strings.Contains(out, "hubs/"+log+": ") {
		t.Errorf("verify: %d\n%s%s", code, out, errs)
	}
	out, errs, code = journalRun(t, dir, "dump", "--hub", log)
	for _, want := range []string{"new partition", "partition 0: 2 from event 2 on", "body", "new coordinator", "groups created", "group $default: partition 0"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("dump: %d, want %q in\n%s%s", code, want, out, errs)
		}
	}
	if _, errs, code := journalRun(t, dir, "dump", "--hub", "other"); code != 3 || !strings.Contains(errs, "hubs/other") {
		t.Errorf("dump of no log: %d, %s", code, errs)
	}

	damageFile(t, filepath.Join(dir, "hubs", log), "event number one")
	out, errs, code = journalRun(t, dir, "verify")
	if code != cli.ExitFailed || !strings.Contains(out, "damaged: hubs/"+log+"/") {
		t.Errorf("verify after damage: %d\n%s%s", code, out, errs)
	}
	out, errs, code = journalRun(t, dir, "repair", "--drop-damaged")
	if code != cli.ExitFailed || !strings.Contains(out, "dropped: hubs/"+log+"/") {
		t.Errorf("repair: %d\n%s%s", code, out, errs)
	}
	if out, errs, code := journalRun(t, dir, "verify"); code != 0 {
		t.Errorf("verify after the repair: %d\n%s%s", code, out, errs)
	}
}

// damageFile changes a byte of text in the file that has it.
func damageFile(t *testing.T, dir, text string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		path := filepath.Join(dir, file.Name())
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := strings.Index(string(b), text)
		if at < 0 {
			continue
		}
		b[at] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("%q is in no file", text)
}
