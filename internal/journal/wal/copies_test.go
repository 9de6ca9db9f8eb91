// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/vfs"
)

// A7: the manifest is written where the last one was, so that a disk which other
// processes have filled to the last byte keeps nobody from truncating. If it has
// outgrown its files a spare is given up for it.
func TestManifestNeedsNoFreeSpace(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfs.NewFault(mem)
	w, err := Open(fault, Options{SegmentSize: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := claim(t, w, 1)
	at := appendOne(t, w, c, "first")
	commit(t, w)
	if got := w.Stats(); got.Spares == 0 {
		t.Fatalf("%+v: there is no spare to be given up", got)
	}

	fault.Fill() // and what is freed is taken by others at once
	for range 100 {
		if err := w.Truncate(c, journal.Keep{From: at}); err != nil {
			t.Fatalf("truncate on a full disk: %v", err)
		}
	}
	fault.Drain()
	fault.SetFree(0)
	if _, _, err := w.Claim(numbersBelow(500)...); err != nil {
		t.Fatalf("claim of 500 shards: %v, want a spare to be given up for its manifest", err)
	}
	w.mu.Lock()
	spares := len(w.stock.spares)
	w.mu.Unlock()
	if spares > 0 {
		t.Errorf("%d spares are left, want none", spares)
	}

	fault.SetFree(0)
	if _, _, err := w.Claim(numbersBelow(5000)...); !errors.Is(err, ErrFull) {
		t.Fatalf("claim of 5000 shards on a full disk: %v, want %v", err, ErrFull)
	}
	if got := open(t, mem.CrashClone(0)).Shards(); got != 500 {
		t.Errorf("after a crash: %d shards, want 500", got)
	}
	fault.SetFree(-1)
	if _, _, err := w.Claim(numbersBelow(5000)...); err != nil {
		t.Errorf("claim of 5000 shards when there is space: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A manifest of a later version is not damage, and nothing that repair may touch.
func TestManifestOfALaterVersion(t *testing.T) {
	s := makeStored(t)
	found, err := readCopies(s.disk)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := found.best()
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	later := append([]byte(nil), b...)
	later[len("triagemq-journal ")] = '3'
	if _, err := decodeManifest(manifestName, later); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("with another digit: %v, want %v", err, journal.ErrCorrupt)
	}
	_, body, _ := bytes.Cut(b, []byte{'\n'})
	later = fmt.Appendf(nil, manifestFormat, 3, sumManifest(3, body), len(body))
	later = append(later, body...)
	if _, err := decodeManifest(manifestName, later); err == nil || errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("with the checksum of version 3: %v, want another error than %v", err, journal.ErrCorrupt)
	}
	for _, name := range copyNames {
		if err := install(s.disk, name, later); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Repair(s.disk, DropDamaged); err == nil || errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("repair: %v, want it to leave the store alone", err)
	}
}
