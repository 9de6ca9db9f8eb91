// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/cli/host"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/vfs"
)

// makeStore makes a store with one record of each kind that matters.
func makeStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	w, err := wal.Open(vfs.OS(dir), wal.Options{SegmentSize: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := journal.ClaimOne(t.Context(), w, 1)
	if err != nil {
		t.Fatal(err)
	}
	time := "\x00\x00\x00\x00\x00\x00\x00\x00"
	records := [][]byte{
		[]byte("\x03\x01\x00\x06orders\x02{}"),
		[]byte("\x01Hello"),
		[]byte("\x02\x04\x01" + time + "\x01\x01\x00\x04\x00\x08\x05"),
		[]byte("\x02\x04\x03\x01\x02"),
		[]byte("\x02\x04\x02\x01\x02"),
		[]byte("\x02\x05\x01" + time + "\x01\x01\x00\x04\x00\x08\x05"),
		[]byte("\x07\x01\x02\x00"),
		[]byte("\x08\x01\x01\x00\x00\x06orders\x02{}"),
		[]byte("\x09\x01\x04\x14"),
		[]byte("\x0a\x01"),
		[]byte("\x05\x01"),
	}
	if err := w.Append(c, &journal.Group{Records: records, At: make([]journal.Position, len(records))}); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// journalRun runs a journal command and returns what it printed and its exit code.
func journalRun(t *testing.T, dir string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), append([]string{"journal"}, append(args, "--data", dir)...), cli.Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return strings.ReplaceAll(o.String(), dir, "DIR"), strings.ReplaceAll(e.String(), dir, "DIR"), code
}

func wantText(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %q\nwant %q\n%s", what, got, want, got)
	}
}

func TestJournalOfASoundStore(t *testing.T) {
	dir := makeStore(t)
	out, errs, code := journalRun(t, dir, "verify")
	wantText(t, "verify", out, "3 segments, 3 batches, 11 records, 672 bytes; the log ends at 66720\nno damage\n")
	if code != 0 || errs != "" {
		t.Errorf("verify: code %d, %q", code, errs)
	}
	out, _, _ = journalRun(t, dir, "verify", "--json")
	wantText(t, "verify --json", out, `{"segments":3,"batches":3,"records":11,"bytes":672,"end":66720,"problems":[],"notes":[]}`+"\n")

	out, _, code = journalRun(t, dir, "dump")
	want, err := os.ReadFile(filepath.Join("testdata", "journal-dump.txt"))
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, "dump", out, string(want))
	if code != 0 {
		t.Errorf("dump: code %d", code)
	}
	if out, _, _ := journalRun(t, dir, "dump", "--shard", "0"); strings.Count(out, "\n") != 1 {
		t.Errorf("dump of a shard that has nothing:\n%s", out)
	}
	out, _, _ = journalRun(t, dir, "dump", "--json")
	wantText(t, "dump --json", strings.SplitAfter(out, "\n")[5],
		`{"file":"0000000001.seg","position":66432,"shard":1,"epoch":1,"number":6,"bytes":5,"record":"removed","about":"entity 1: message 1, 2"}`+"\n")
	out, _, code = journalRun(t, dir, "repair", "--drop-damaged")
	wantText(t, "repair", out, "no damage, nothing dropped\n")
	if code != 0 {
		t.Errorf("repair: code %d", code)
	}
}

// damage flips a bit in the middle of a body.
func damage(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(b, []byte("Hello")); i >= 0 {
			b[i] ^= 4
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("no file holds the body")
}

func TestJournalOfADamagedStore(t *testing.T) {
	dir := makeStore(t)
	damage(t, dir)
	for _, command := range []string{"verify", "dump"} {
		out, errs, code := journalRun(t, dir, command)
		if code != cli.ExitFailed || !strings.Contains(out, "damaged: ") || !strings.Contains(errs, "found 1 damaged places in DIR") {
			t.Errorf("%s: code %d, said %q and %q", command, code, out, errs)
		}
	}
	if out, errs, code := journalRun(t, dir, "repair"); code != cli.ExitUsage || out != "" {
		t.Errorf("repair without a word: code %d, %q, %q", code, out, errs)
	}
	out, errs, code := journalRun(t, dir, "repair", "--drop-damaged")
	if code != cli.ExitFailed || !strings.Contains(out, "dropped: ") || !strings.Contains(errs, "dropped 1 damaged places") {
		t.Errorf("repair: code %d, said %q and %q", code, out, errs)
	}
	if out, _, code := journalRun(t, dir, "verify"); code != 0 {
		t.Errorf("verify after the repair: code %d, %q", code, out)
	}
	if out, _, _ := journalRun(t, dir, "dump"); !strings.Contains(out, `"orders"`) || strings.Contains(out, "body") {
		t.Errorf("dump after the repair:\n%s", out)
	}
}

func TestJournalLeavesARunningStoreAlone(t *testing.T) {
	dir := makeStore(t)
	w, err := wal.Open(vfs.OS(dir), wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, args := range [][]string{{"verify"}, {"dump"}, {"repair", "--drop-damaged"}} {
		_, errs, code := journalRun(t, dir, args...)
		wantText(t, args[0], errs, "triagemq: a broker has DIR open; stop it first\n")
		if code != host.ExitUnavailable {
			t.Errorf("%s: code %d, want %d", args[0], code, host.ExitUnavailable)
		}
	}
}

func TestJournalOfNoStore(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		if out, errs, code := journalRun(t, dir, "verify"); code != host.ExitUnavailable || out != "" || errs == "" {
			t.Errorf("verify %s: code %d, %q, %q", dir, code, out, errs)
		}
	}
	// Nor is a directory of something else one, and nothing is left in it.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify"}, {"dump"}, {"repair", "--drop-damaged"}} {
		if out, errs, code := journalRun(t, dir, args...); code != host.ExitUnavailable || out != "" || !strings.Contains(errs, "holds no store") {
			t.Errorf("%s: code %d, %q, %q", args[0], code, out, errs)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// A13: a store whose manifests are both lost is whole after a repair.
func TestJournalOfAStoreWithoutManifest(t *testing.T) {
	dir := makeStore(t)
	whole, _, _ := journalRun(t, dir, "dump")
	if err := os.Remove(filepath.Join(dir, "MANIFEST.copy")); err != nil {
		t.Fatal(err)
	}
	out, _, code := journalRun(t, dir, "verify")
	if code != 0 || !strings.Contains(out, "note: MANIFEST.copy at 0: file is missing") || !strings.Contains(out, "no damage") {
		t.Errorf("verify with one of two: code %d, %q", code, out)
	}
	if err := os.Remove(filepath.Join(dir, "MANIFEST")); err != nil {
		t.Fatal(err)
	}
	out, _, code = journalRun(t, dir, "verify")
	if code != cli.ExitFailed || !strings.Contains(out, "damaged: MANIFEST at 0: file is missing") {
		t.Errorf("verify without any: code %d, %q", code, out)
	}
	out, errs, code := journalRun(t, dir, "repair", "--drop-damaged")
	wantText(t, "repair", out, "restored: MANIFEST: file is missing\nnothing dropped\n")
	if code != 0 {
		t.Errorf("repair: code %d, %q", code, errs)
	}
	if out, _, code := journalRun(t, dir, "verify"); code != 0 || strings.Contains(out, "note: ") {
		t.Errorf("verify after the repair: code %d, %q", code, out)
	}
	if out, _, _ := journalRun(t, dir, "dump"); out != whole {
		t.Errorf("dump after the repair:\n%s", out)
	}
}

// A13: the last segment with records is gone, and those that were ready behind it
// are not.
func TestJournalOfAStoreWithoutItsEnd(t *testing.T) {
	dir := makeStore(t)
	if err := os.Remove(filepath.Join(dir, "0000000001.seg")); err != nil {
		t.Fatal(err)
	}
	out, _, code := journalRun(t, dir, "verify")
	if code != cli.ExitFailed || !strings.Contains(out, "damaged: 0000000001.seg at 0: file is missing, and the log goes on there") {
		t.Errorf("verify: code %d, %q", code, out)
	}
	out, _, code = journalRun(t, dir, "repair", "--drop-damaged")
	if code != cli.ExitFailed || !strings.Contains(out, "dropped: 0000000001.seg at 0: ") {
		t.Errorf("repair: code %d, %q", code, out)
	}
	if out, _, code := journalRun(t, dir, "verify"); code != 0 {
		t.Errorf("verify after the repair: code %d, %q", code, out)
	}
}
