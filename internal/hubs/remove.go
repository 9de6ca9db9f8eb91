// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// mark is the file that says that a log is being removed. Without it a log that has no
// definition is kept.
const mark = "REMOVED"

// Remove stops a log and removes its files. A crash in between leaves the rest to the
// next Load.
func (s *Set) Remove(ctx context.Context, name string) error {
	s.mu.Lock()
	l := s.logs[name]
	delete(s.logs, name)
	var done chan struct{}
	if l != nil && l.done != nil {
		l.stop(errRemoved)
		done = l.done
	}
	s.mu.Unlock()
	switch {
	case l == nil:
		return fmt.Errorf("%w: %s", errNoLog, name)
	case done != nil:
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	default:
		if err := l.close(); err != nil {
			return fmt.Errorf("close the log of a hub: %w", err)
		}
	}
	return s.removeFiles(name)
}

// removeFiles removes the directory of a log that is not open.
func (s *Set) removeFiles(name string) error {
	dir := path.Join(root, name)
	if err := s.mark(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it is gone
		}
		return fmt.Errorf("mark %s as removed: %w", dir, err)
	}
	files, err := s.fs.List(dir)
	if err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	for _, file := range files {
		if file == mark {
			continue // it goes last
		}
		if err := s.fs.Remove(path.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", dir, err)
		}
	}
	if err := s.fs.SyncDir(dir); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	for _, last := range []string{path.Join(dir, mark), dir} {
		if err := s.fs.Remove(last); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", last, err)
		}
	}
	return s.fs.SyncDir(root)
}

// mark makes it durable that a log is being removed.
func (s *Set) mark(dir string) error {
	f, err := s.fs.Create(path.Join(dir, mark))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return s.fs.SyncDir(dir)
}

// isMarked reports whether a log is being removed, or is an empty directory, which a
// crash leaves behind after the mark is gone.
func (s *Set) isMarked(name string) bool {
	files, err := s.fs.List(path.Join(root, name))
	if err != nil {
		return false
	}
	for _, file := range files {
		if file == mark {
			return true
		}
	}
	return len(files) == 0
}
