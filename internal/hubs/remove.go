// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/triagemq/triagemq/internal/vfs"
)

// mark is the file that says that a log is removed with its definition. Without it a log
// that has no definition is kept.
const mark = "REMOVED"

// Condemn makes it durable that a log goes when its definition does: if a crash comes after
// that and before Remove, the next Load removes it. If the definition stays, so does the log.
func (s *Set) Condemn(name string) error {
	if err := s.mark(path.Join(root, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("mark log %s: %w", name, err)
	}
	return nil
}

// pardon undoes Condemn.
func (s *Set) pardon(name string) error {
	return s.takeAway(name, mark)
}

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
	if err := s.markAny(dir); err != nil {
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
func (s *Set) mark(dir string) error { return s.put(dir, mark) }

// put makes an empty file, which is durable when it returns.
func (s *Set) put(dir, file string) error {
	f, err := s.fs.Create(path.Join(dir, file))
	switch {
	case err == nil:
		err = f.Close()
	case errors.Is(err, fs.ErrExist):
		return nil
	}
	if err != nil {
		return err
	}
	return s.fs.SyncDir(dir)
}

// markAny is mark of a log that is not open, on a disk that has no space for another file:
// one that is there becomes the mark.
func (s *Set) markAny(dir string) error {
	err := s.mark(dir)
	if !errors.Is(err, vfs.ErrNoSpace) {
		return err
	}
	files, lerr := s.fs.List(dir)
	if lerr != nil || len(files) == 0 {
		return errors.Join(err, lerr)
	}
	if err := s.fs.Rename(path.Join(dir, files[0]), path.Join(dir, mark)); err != nil {
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
