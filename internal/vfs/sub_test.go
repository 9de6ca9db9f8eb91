// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
)

func TestSubIsADirectoryOfItsParent(t *testing.T) {
	for name, parent := range map[string]FS{"OS": OS(t.TempDir()), "Mem": NewMem()} {
		fsys := Sub(parent, "hubs/7")
		if err := fsys.MkdirAll("."); err != nil {
			t.Fatal(name, err)
		}
		create(t, fsys, "a", "in the directory")
		if got := contents(t, parent, "hubs/7/a"); got != "in the directory" {
			t.Errorf("%s: the parent has %q", name, got)
		}
		if names, err := parent.List("hubs"); err != nil || !slices.Equal(names, []string{"7"}) {
			t.Errorf("%s: the parent lists %v, %v", name, names, err)
		}
		if names, err := fsys.List("."); err != nil || !slices.Equal(names, []string{"a"}) {
			t.Errorf("%s: it lists %v, %v", name, names, err)
		}
	}
}

func TestRemoveDirectory(t *testing.T) {
	each(t, func(t *testing.T, fsys FS) {
		if err := fsys.MkdirAll("d/e"); err != nil {
			t.Fatal(err)
		}
		create(t, fsys, "d/e/f", "x")
		for _, dir := range []string{"d/e", "d"} {
			if err := fsys.Remove(dir); err == nil {
				t.Errorf("removed %s, in which there is something", dir)
			}
		}
		for _, name := range []string{"d/e/f", "d/e", "d"} {
			if err := fsys.Remove(name); err != nil {
				t.Errorf("remove %s: %v", name, err)
			}
		}
		if _, err := fsys.List("d"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("list a directory that was removed: %v", err)
		}
	})
}
