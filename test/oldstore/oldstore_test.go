// SPDX-License-Identifier: Apache-2.0

package oldstore

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/vfs"
)

var update = flag.Bool("update", false, "write a new store and its state instead of comparing")

const (
	storeFile = "store.tar.gz"
	stateFile = "state.txt"
)

// TestOldStoreOpens opens the store twice: as the power cut left it, and again
// after the broker was stopped cleanly.
func TestOldStoreOpens(t *testing.T) {
	if *update {
		writeStore(t)
	}
	synctest.Test(t, func(t *testing.T) {
		disk := unpack(t, filepath.Join("testdata", storeFile))
		time.Sleep(24 * time.Hour) // after the last thing that the writer did
		b := open(t, disk)
		found := b.state()
		b.stop()
		b = open(t, disk)
		if again := b.state(); again != found {
			t.Errorf("opened again, its contents differ:\n%s", difference(again, found))
		}
		found += b.deliveries()
		b.stop()
		compare(t, filepath.Join("testdata", stateFile), found)
	})
}

// compare fails the test if the text is not the one in the file.
func compare(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the old store is read differently:\n%s", difference(got, string(want)))
	}
}

// difference shows the lines around the first one that differs.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	at := 0
	for at < len(g) && at < len(w) && g[at] == w[at] {
		at++
	}
	show := func(lines []string) string {
		return strings.Join(lines[min(at, len(lines)):min(at+5, len(lines))], "\n\t")
	}
	return "got\n\t" + show(g) + "\nwant\n\t" + show(w)
}

// broker is a broker on the store, with what the test needs beside it.
type broker struct {
	*brokertest.Broker
	t    testing.TB
	stop func()
	wait func(time.Duration) // of the writer: lets the bubble's clock go on
}

func open(t testing.TB, disk vfs.FS) broker {
	t.Helper()
	b, err := brokertest.Open(t.Context(), disk, options)
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		if err := b.Stop(); err != nil {
			t.Errorf("stop the broker: %v", err)
		}
	})
	t.Cleanup(stop)
	return broker{Broker: b, t: t, stop: stop}
}

// pack writes the files of a disk into an archive.
func pack(t testing.TB, disk vfs.FS, name string) {
	t.Helper()
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	a := tar.NewWriter(z)
	names, err := disk.List(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		raw := readFile(t, disk, n)
		if err := a.WriteHeader(&tar.Header{Name: n, Mode: 0o600, Size: int64(len(raw))}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Write(raw); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(a.Close(), z.Close(), os.WriteFile(name, packed.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files, %d bytes packed", len(names), packed.Len())
}

func readFile(t testing.TB, disk vfs.FS, name string) []byte {
	t.Helper()
	f, err := disk.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, size)
	if _, err := f.ReadAt(raw, 0); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return raw
}

// unpack returns a disk in memory with the files of an archive.
func unpack(t testing.TB, name string) *vfs.Mem {
	t.Helper()
	packed, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	disk := vfs.NewMem()
	for a := tar.NewReader(z); ; {
		h, err := a.Next()
		if errors.Is(err, io.EOF) {
			return disk
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(a)
		if err != nil {
			t.Fatal(err)
		}
		f, err := disk.Create(h.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(raw, 0); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Sync(), f.Close(), disk.SyncDir(".")); err != nil {
			t.Fatal(err)
		}
	}
}
