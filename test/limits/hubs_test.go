// SPDX-License-Identifier: Apache-2.0

//go:build linux

package limits

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
)

// Many more event hubs than descriptors: all of them are written at once and read, before and
// after a restart, and queues are served. An empty one takes less than a megabyte.
func TestMoreHubsThanDescriptors(t *testing.T) {
	const count, descriptors = 150, 256
	var config strings.Builder
	config.WriteString("hubs:\n")
	for i := range count {
		fmt.Fprintf(&config, "  - {name: h%d, partitionCount: 2}\n", i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	dir := t.TempDir()
	limit := fmt.Sprintf("ulimit -n %d", descriptors)
	for life := range 2 {
		b := startIn(t, dir, limit, config.String())
		if life == 0 {
			if used := usage(t, filepath.Join(dir, "data", "hubs")); used > count<<20 {
				t.Errorf("%d empty hubs take %d KiB", count, used>>10)
			}
		}
		var wg sync.WaitGroup
		for worker := range 5 { // each with a connection
			wg.Go(func() {
				s, err := b.session(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				for i := worker; i < count; i += 5 {
					if err := sendTo(ctx, s, fmt.Sprintf("h%d/Partitions/0", i), fmt.Sprint("event ", life)); err != nil {
						t.Errorf("hub %d: %v", i, err)
						return
					}
				}
			})
		}
		wg.Wait()
		s, err := b.session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < count && !t.Failed(); i += 7 {
			r, err := s.NewReceiver(ctx, fmt.Sprintf("h%d/ConsumerGroups/$Default/Partitions/0", i), nil)
			if err != nil {
				t.Fatal(err)
			}
			for n := range life + 1 {
				m, err := r.Receive(ctx, nil)
				if err != nil || string(m.GetData()) != fmt.Sprint("event ", n) {
					t.Fatalf("hub %d, life %d: %v, %v", i, life, m, err)
				}
			}
			if err := r.Close(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := sendTo(ctx, s, "q", "message"); err != nil {
			t.Fatal(err)
		}
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.ID()))
		if err != nil {
			t.Fatal(err)
		}
		if len(open) > descriptors*3/4 {
			t.Errorf("%d descriptors of %d are in use", len(open), descriptors)
		}
		if log := b.Log(); strings.Contains(log, "too many open files") || strings.Contains(log, "not available") {
			t.Errorf("the log says\n%s", b.LastWords())
		}
		if life == 0 {
			if err := b.Stop(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func sendTo(ctx context.Context, s *amqp.Session, address, text string) error {
	send, err := s.NewSender(ctx, address, nil)
	if err != nil {
		return err
	}
	if err := send.Send(ctx, amqp.NewMessage([]byte(text)), nil); err != nil {
		return err
	}
	return send.Close(ctx)
}

// usage returns how much of the disk the files of a directory take.
func usage(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}
