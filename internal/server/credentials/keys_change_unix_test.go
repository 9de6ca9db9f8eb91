// SPDX-License-Identifier: Apache-2.0

//go:build unix

package credentials

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/vfs"
)

// Each change that is reported as done is done: the key it made is the one that the next
// change makes the secondary, or the one that is kept at the end.
func TestKeysAreChangedOneAtATime(t *testing.T) {
	dir := t.TempDir()
	root := access.NewRule(access.RootRule, access.All)
	if err := SaveRules(vfs.OS(dir), access.Rules{root}); err != nil {
		t.Fatal(err)
	}
	const workers, times = 16, 200
	var mu sync.Mutex
	made, replaced := map[string]bool{}, map[string]bool{root.PrimaryKey: false}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range times {
				r, err := ChangeKey(dir, access.RootRule, access.Rule.Rotate)
				if errors.Is(err, vfs.ErrLocked) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if replaced[r.SecondaryKey] {
					t.Error("two changes replace the same key")
				}
				made[r.PrimaryKey], replaced[r.SecondaryKey] = true, true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	last, err := Keys(dir)
	if err != nil {
		t.Fatal(err)
	}
	for key := range made {
		if key != last[0].PrimaryKey && !replaced[key] {
			t.Error("a key that was made is lost")
		}
	}
	t.Logf("%d changes", len(made))
}

// Users that could read and write the file can do so after a change: where the broker has
// access by its group, as in a cluster that gives each process another user, it would not
// start again otherwise.
func TestChangeKeyKeepsTheMode(t *testing.T) {
	dir := t.TempDir()
	if err := SaveRules(vfs.OS(dir), access.Rules{access.NewRule(access.RootRule, access.All)}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, RulesFile)
	if err := os.Chmod(file, 0o660); err != nil {
		t.Fatal(err)
	}
	group := -1
	if os.Getuid() == 0 {
		group = 12345
		if err := os.Chown(file, -1, group); err != nil { // its user stays the one who changes the key
			t.Fatal(err)
		}
	}
	if _, err := ChangeKey(dir, access.RootRule, access.Rule.Rotate); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v, %v, want 660", info.Mode(), err)
	}
	if got := groupOf(info); group >= 0 && got != group {
		t.Errorf("group %d, want %d", got, group)
	}
}

func groupOf(info os.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Gid) }

// What a change leaves behind that was killed holds keys that are in use; the next one
// takes it away.
func TestChangeKeyAfterOneThatWasKilled(t *testing.T) {
	dir := t.TempDir()
	if err := SaveRules(vfs.OS(dir), access.Rules{access.NewRule(access.RootRule, access.All)}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, RulesFile+".new"), []byte("half of"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := ChangeKey(dir, access.RootRule, access.Rule.Rotate)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Keys(dir); err != nil || len(got) != 1 || got[0] != r {
		t.Errorf("Keys = %+v, %v, want %+v", got, err, r)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, RulesFile+".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
