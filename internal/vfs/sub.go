// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"io"
	"path"
)

// sub is a directory of another file system, as a file system of its own.
type sub struct {
	parent FS
	dir    string
}

// Sub returns the directory dir of parent as a file system: "." is dir itself, which
// need not exist yet. A disk that is full, fails or crashes does so for all of its
// directories.
func Sub(parent FS, dir string) FS { return &sub{parent, path.Clean(dir)} }

// in returns the name that the parent has for name. A name that would leave the
// directory stays as it is below it, so that the parent refuses it.
func (s *sub) in(name string) string {
	if name == "." {
		return s.dir
	}
	return s.dir + "/" + name
}

func (s *sub) Create(name string) (File, error) { return s.parent.Create(s.in(name)) }

func (s *sub) Open(name string) (File, error) { return s.parent.Open(s.in(name)) }

func (s *sub) Rename(oldName, newName string) error {
	return s.parent.Rename(s.in(oldName), s.in(newName))
}

func (s *sub) Remove(name string) error { return s.parent.Remove(s.in(name)) }

func (s *sub) List(dir string) ([]string, error) { return s.parent.List(s.in(dir)) }

// MkdirAll makes a directory. The directory of s itself and those above it survive a
// power cut, as the root of a disk does: what is synced within them would be lost with
// them.
func (s *sub) MkdirAll(dir string) error {
	if err := s.parent.MkdirAll(s.in(dir)); err != nil || dir != "." {
		return err
	}
	for above := path.Dir(s.dir); ; above = path.Dir(above) {
		if err := s.parent.SyncDir(above); err != nil || above == "." {
			return err
		}
	}
}

func (s *sub) SyncDir(dir string) error { return s.parent.SyncDir(s.in(dir)) }

func (s *sub) Lock(name string) (io.Closer, error) { return s.parent.Lock(s.in(name)) }

func (s *sub) Space() (Space, error) { return s.parent.Space() }
