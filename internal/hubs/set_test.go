// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/streamserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

var small = Options{Journal: wal.Options{SegmentSize: 1 << 20}}

var twoPartitions = streamserver.Settings{Partitions: 2, RetainFor: time.Hour}

// running is a Set that runs.
type running struct {
	*Set
	stop func() error
}

// start loads and runs the logs on a disk.
func start(t *testing.T, fsys vfs.FS, defined map[string]streamserver.Settings) running {
	t.Helper()
	s := New(fsys, small, slog.New(slog.DiscardHandler))
	if err := s.Load(t.Context(), defined); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	r := running{s, func() error {
		stopped = true
		cancel(errTestOver)
		if err := <-done; !errors.Is(err, errTestOver) {
			return err
		}
		return nil
	}}
	t.Cleanup(func() {
		if !stopped {
			if err := r.stop(); err != nil {
				t.Errorf("run: %v", err)
			}
		}
	})
	return r
}

var errTestOver = errors.New("the test is over")

func (r running) create(t *testing.T, name string) {
	t.Helper()
	if err := r.Create(t.Context(), name, twoPartitions); err != nil {
		t.Fatal(err)
	}
}

func (r running) append(t *testing.T, name, text string) {
	t.Helper()
	h, err := r.Hub(name)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	h.Append(&streamserver.Append{Raw: []byte(text), Count: 1, Done: func(_ stream.SeqNo, err error) { done <- err }})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func (r running) read(t *testing.T, name string) string {
	t.Helper()
	h, err := r.Hub(name)
	if err != nil {
		t.Fatal(err)
	}
	in, err := h.OpenReader(t.Context(), streamserver.ReaderOptions{Group: "g", From: stream.Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	batches, err := in.Next(t.Context(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, b := range batches {
		texts = append(texts, string(b.Raw))
	}
	return strings.Join(texts, " ")
}

func TestEventsSurviveARestart(t *testing.T) {
	disk := vfs.NewMem()
	s := start(t, disk, nil)
	s.create(t, "a")
	s.create(t, "b")
	s.append(t, "a", "one")
	s.append(t, "b", "other")
	s.append(t, "a", "two")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, disk.CrashClone(1), map[string]streamserver.Settings{"a": twoPartitions, "b": twoPartitions})
	if a, b := s.read(t, "a"), s.read(t, "b"); a != "one two" || b != "other" {
		t.Errorf("after a restart a has %q and b %q", a, b)
	}
	if got := s.Names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("logs are %v", got)
	}
}

func TestRemovedLogIsGone(t *testing.T) {
	disk := vfs.NewMem()
	s := start(t, disk, nil)
	s.create(t, "a")
	s.append(t, "a", "one")
	h, err := s.Hub("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	h.Append(&streamserver.Append{Raw: []byte("late"), Count: 1, Done: func(_ stream.SeqNo, err error) { done <- err }})
	if err := <-done; !errors.Is(err, streamserver.ErrStopped) {
		t.Errorf("append to a removed log: %v, want %v", err, streamserver.ErrStopped)
	}
	if _, err := s.Hub("a"); !errors.Is(err, errNoLog) {
		t.Errorf("a removed log: %v, want %v", err, errNoLog)
	}
	if names, err := disk.List(root); err != nil || len(names) > 0 {
		t.Errorf("left on disk: %v, %v", names, err)
	}
	if err := s.Remove(t.Context(), "a"); !errors.Is(err, errNoLog) {
		t.Errorf("remove it once more: %v, want %v", err, errNoLog)
	}
	s.create(t, "a")
	s.append(t, "a", "new")
	if got := s.read(t, "a"); got != "new" {
		t.Errorf("a new log of the name has %q", got)
	}
}

// A crash at each call of a removal leaves a log that is whole, or one that the next
// start removes.
func TestRemovalSurvivesACrash(t *testing.T) {
	errCrash := errors.New("crash")
	for n := 1; ; n++ {
		disk := vfs.NewMem()
		fault := vfs.NewFault(disk)
		s := start(t, fault, nil)
		s.create(t, "a")
		s.append(t, "a", "one")
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		left := n
		fault.Before(func(op vfs.Op, _ string) error {
			if op != vfs.OpRemove && op != vfs.OpSyncDir && op != vfs.OpCreate {
				return nil
			}
			if left--; left <= 0 {
				return errCrash
			}
			return nil
		})
		err := s.removeFiles("a")
		crashed := disk.CrashClone(uint64(n))
		next := start(t, crashed, nil)
		names, lerr := crashed.List(root)
		switch {
		case lerr != nil && !errors.Is(lerr, fs.ErrNotExist):
			t.Fatal(lerr)
		case err == nil && len(names) > 0:
			t.Fatalf("the removal returned, and %v is left", names)
		case len(names) > 0: // the mark was not durable
			if err := next.stop(); err != nil {
				t.Fatal(err)
			}
			if got := start(t, crashed, map[string]streamserver.Settings{"a": twoPartitions}).read(t, "a"); got != "one" {
				t.Fatalf("crash at call %d: the log is left, with %q", n, got)
			}
		}
		if err == nil {
			return
		}
		if n > 100 {
			t.Fatal("the removal never ends")
		}
	}
}

// A crash between the end of a definition and the removal leaves nothing behind. Before it,
// the log is what it was.
func TestCondemnedLogGoesWithItsDefinition(t *testing.T) {
	disk := vfs.NewMem()
	s := start(t, disk, nil)
	s.create(t, "a")
	s.append(t, "a", "one")
	if err := s.Condemn("a"); err != nil {
		t.Fatal(err)
	}
	s.append(t, "a", "two")
	defined, gone := disk.CrashClone(1), disk.CrashClone(2)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s = start(t, defined, map[string]streamserver.Settings{"a": twoPartitions})
		if got := s.read(t, "a"); got != "one two" {
			t.Errorf("the log has %q", got)
		}
		if s.isMarked("a") {
			t.Error("the log is still marked")
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
	}
	start(t, gone, nil)
	if names, err := gone.List(root); err != nil || len(names) > 0 {
		t.Errorf("left on disk: %v, %v", names, err)
	}
	if err := s.Condemn("never there"); err != nil {
		t.Error(err)
	}
}

// A hub can be deleted on a disk that has no space for another file.
func TestRemovalOnAFullDisk(t *testing.T) {
	disk := vfs.NewMem()
	fault := vfs.NewFault(disk)
	s := start(t, fault, nil)
	s.create(t, "a")
	s.append(t, "a", "one")
	fault.Before(func(op vfs.Op, _ string) error {
		if op == vfs.OpCreate {
			return vfs.ErrNoSpace
		}
		return nil
	})
	if err := s.Condemn("a"); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("condemn: %v", err)
	}
	if err := s.Remove(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if names, err := disk.List(root); err != nil || len(names) > 0 {
		t.Errorf("left on disk: %v, %v", names, err)
	}
}

func TestLogThatCannotBeOpened(t *testing.T) {
	disk := vfs.NewMem()
	s := start(t, disk, nil)
	s.create(t, "a")
	s.create(t, "b")
	s.append(t, "b", "one")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"MANIFEST", "MANIFEST.copy"} {
		f, err := disk.Open("hubs/a/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("damaged"), 0); err != nil {
			t.Fatal(err)
		}
	}
	s = start(t, disk, map[string]streamserver.Settings{"a": twoPartitions, "b": twoPartitions, "gone": twoPartitions})
	for _, name := range []string{"a", "gone"} {
		if _, err := s.Hub(name); err == nil {
			t.Errorf("log %s can be used", name)
		} else if e, ok := errors.AsType[*unavailableError](err); !ok || e.Log != name {
			t.Errorf("log %s: %v, want an unavailableError", name, err)
		}
	}
	if got := s.read(t, "b"); got != "one" {
		t.Errorf("the other log has %q", got)
	}
	if err := s.Remove(t.Context(), "a"); err != nil {
		t.Errorf("remove a log that cannot be opened: %v", err)
	}
}

func TestLogWithoutDefinitionIsKept(t *testing.T) {
	disk := vfs.NewMem()
	s := start(t, disk, nil)
	s.create(t, "a")
	s.append(t, "a", "one")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, disk, nil)
	if err := s.Create(t.Context(), "a", twoPartitions); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create a log that is there: %v, want %v", err, fs.ErrExist)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if got := start(t, disk, map[string]streamserver.Settings{"a": twoPartitions}).read(t, "a"); got != "one" {
		t.Errorf("the log has %q", got)
	}
}

func TestNamesOfLogs(t *testing.T) {
	s := start(t, vfs.NewMem(), nil)
	for _, name := range []string{"", ".", "..", "a/b", `a\b`} {
		if err := s.Create(t.Context(), name, twoPartitions); err == nil {
			t.Errorf("created %q", name)
		}
	}
}

// A disk that fails ends the process: what was written is not known.
func TestFailedSyncEndsRun(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	s := start(t, fault, nil)
	s.create(t, "a")
	s.append(t, "a", "one")
	errDisk := errors.New("disk failed")
	fault.Before(func(op vfs.Op, _ string) error {
		if op == vfs.OpSync {
			return errDisk
		}
		return nil
	})
	h, err := s.Hub("a")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	h.Append(&streamserver.Append{Raw: []byte("two"), Count: 1, Done: func(_ stream.SeqNo, err error) { done <- err }})
	if err := <-done; err == nil {
		t.Error("an event is acknowledged that was not synced")
	}
	fault.Before(nil)
	if err := s.stop(); !errors.Is(err, errDisk) {
		t.Errorf("run ended with %v, want %v", err, errDisk)
	}
}

// What a repair has dropped is said when the log is opened.
func TestLostEventsAreLogged(t *testing.T) {
	disk := vfs.NewMem()
	s := start(t, disk, nil)
	s.create(t, "a")
	for _, text := range []string{"one", "two", "three"} {
		s.append(t, "a", text)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	f, err := disk.Open("hubs/a/0000000001.seg")
	if err != nil {
		t.Fatal(err)
	}
	all := make([]byte, 64<<10)
	if _, err := f.ReadAt(all, 0); err != nil {
		t.Fatal(err)
	}
	from, to := bytes.Index(all, []byte("two")), bytes.Index(all, []byte("three"))
	if _, err := f.WriteAt(make([]byte, (to-from)/2), int64(from)); err != nil {
		t.Fatal(err)
	}
	if _, err := repair.Repair(vfs.Sub(disk, "hubs/a"), repair.DropDamaged); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	again := New(disk, small, slog.New(slog.NewTextHandler(&log, nil)))
	if err := again.Load(t.Context(), map[string]streamserver.Settings{"a": twoPartitions}); err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"dropped records", "events are lost", "partition=0 first=1 last=1 events=1"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in\n%s", want, log.String())
		}
	}
}

// A log with much damage does not flood that of the broker. All of it is counted.
func TestMuchDamageIsLoggedInPart(t *testing.T) {
	const events = 300
	disk := vfs.NewMem()
	s := start(t, disk, nil)
	s.create(t, "a")
	for range events {
		s.append(t, "a", "to be damaged")
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	again := New(disk, small, slog.New(slog.NewTextHandler(&log, nil)))
	if err := again.Load(t.Context(), map[string]streamserver.Settings{"a": twoPartitions}); err != nil {
		t.Fatal(err)
	}
	f, err := disk.Open("hubs/a/0000000001.seg")
	if err != nil {
		t.Fatal(err)
	}
	all := make([]byte, 1<<20)
	if _, err := f.ReadAt(all, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.ReplaceAll(all, []byte("to be damaged"), []byte("that is damage")[:13]), 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- again.Run(ctx) }()
	h, err := again.Hub("a")
	if err != nil {
		t.Fatal(err)
	}
	in, err := h.OpenReader(t.Context(), streamserver.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	(running{Set: again}).append(t, "a", "the last")
	if got, err := in.Next(t.Context(), 1<<20); err != nil || len(got) != 1 || got[0].First != events {
		t.Errorf("read %v, %v", got, err)
	}
	st, _ := again.Stats("a")
	cancel(errTestOver)
	<-done
	if n := strings.Count(log.String(), "damaged"); n != damageLines || st.Damaged != events {
		t.Errorf("%d lines in the log for %d of %d events", n, st.Damaged, events)
	}
}

// A creation that was killed leaves nothing behind a start. A log that holds events stays,
// whatever its definition has become of.
func TestUnfinishedLogGoes(t *testing.T) {
	for _, c := range []struct {
		what  string
		after func(t *testing.T, s running)
		stays bool
	}{
		{"killed at once", func(*testing.T, running) {}, false},
		{"kept", func(t *testing.T, s running) {
			if err := s.Keep("a"); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"with an event", func(t *testing.T, s running) { s.append(t, "a", "one") }, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			disk := vfs.NewMem()
			s := start(t, disk, nil)
			s.create(t, "a")
			c.after(t, s)
			var killed []*vfs.Mem
			for seed := range uint64(4) {
				killed = append(killed, disk.CrashClone(seed))
			}
			for _, disk := range killed {
				s := start(t, disk, nil)
				left, err := disk.List(root)
				if err != nil {
					t.Fatal(err)
				}
				if stays := len(left) > 0; stays != c.stays {
					t.Errorf("the directory stays: %t, want %t", stays, c.stays)
				}
				if !c.stays {
					s.create(t, "a") // the name is free
				}
				if err := s.stop(); err != nil {
					t.Fatal(err)
				}
			}
			// One that is defined after all is served.
			defined := start(t, disk.CrashClone(9), map[string]streamserver.Settings{"a": twoPartitions})
			defined.append(t, "a", "two")
			if files, err := disk.CrashClone(0).List(root + "/a"); err != nil || len(files) == 0 {
				t.Error(files, err)
			}
		})
	}
}

// Wherever a creation is killed, the next start removes what it has made.
func TestCreationIsKilledAnywhere(t *testing.T) {
	for n := 1; ; n++ {
		disk := vfs.NewMem()
		fault := vfs.NewFault(disk)
		s := New(fault, small, slog.New(slog.DiscardHandler))
		var killed *vfs.Mem
		calls := 0
		fault.Before(func(vfs.Op, string) error {
			if calls++; calls == n {
				killed = disk.CrashClone(uint64(n))
			}
			return nil
		})
		if err := s.Create(t.Context(), "a", twoPartitions); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if killed == nil {
			if n < 20 {
				t.Fatalf("%d calls are few", n)
			}
			return
		}
		again := start(t, killed, nil)
		if left, err := killed.List(root); len(left) > 0 && err == nil {
			files, _ := killed.List(root + "/a")
			t.Errorf("killed at call %d: %v", n, files)
		}
		if err := again.stop(); err != nil {
			t.Fatal(err)
		}
	}
}
