// SPDX-License-Identifier: Apache-2.0

//go:build unix

package credentials

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/vfs"
)

// The keys may be changed by another user than the one that the broker runs as, which
// has to be able to read them afterwards, and nobody else; and by one at a time.
func TestChangeKey(t *testing.T) {
	dir := t.TempDir()
	if _, err := ChangeKey(dir, access.RootRule, access.Rule.Rotate); !errors.Is(err, ErrNoKeys) {
		t.Errorf("without keys: %v, want %v", err, ErrNoKeys)
	}
	root := access.NewRule(access.RootRule, access.All)
	if err := SaveRules(vfs.OS(dir), access.Rules{root}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, RulesFile)
	const broker = 12345
	if os.Getuid() == 0 {
		if err := os.Chown(file, broker, broker); err != nil {
			t.Fatal(err)
		}
	}
	owner := ownerOf(t, file)
	r, err := ChangeKey(dir, "rootmanagesharedaccesskey", access.Rule.Rotate)
	if err != nil || r.SecondaryKey != root.PrimaryKey || r.PrimaryKey == root.PrimaryKey {
		t.Errorf("ChangeKey = %+v, %v", r, err)
	}
	if got, err := Keys(dir); err != nil || len(got) != 1 || got[0] != r {
		t.Errorf("Keys = %+v, %v, want %+v", got, err, r)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || ownerOf(t, file) != owner {
		t.Errorf("mode %v, owner %v, %v, want 600 and %v", info.Mode(), ownerOf(t, file), err, owner)
	}
	lock, err := vfs.OS(dir).Lock(rulesLock)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := ChangeKey(dir, access.RootRule, access.Rule.Rotate); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("while another changes them: %v, want %v", err, vfs.ErrLocked)
	}
	if left, _ := filepath.Glob(file + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func ownerOf(t *testing.T, name string) uint32 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}
