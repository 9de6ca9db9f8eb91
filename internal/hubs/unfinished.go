// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/triagemq/triagemq/internal/streamserver"
)

// unfinished is the file that says that a log is being made for a hub which has no definition
// yet. It is there before anything else in the directory.
const unfinished = "CREATING"

// begin makes the directory of a log and says in it that the log is being made.
func (s *Set) begin(name string) error {
	dir := path.Join(root, name)
	if err := s.fs.MkdirAll(dir); err != nil {
		return err
	}
	return s.put(dir, unfinished)
}

// Keep makes it durable that a log is to be kept: its hub has a definition. Without it the next
// Load that finds the definition does so.
func (s *Set) Keep(name string) error {
	if err := s.takeAway(name, unfinished); err != nil {
		return fmt.Errorf("keep log %s: %w", name, err)
	}
	return nil
}

// takeAway removes a file that says something about a log.
func (s *Set) takeAway(name, file string) error {
	dir := path.Join(root, name)
	err := s.fs.Remove(path.Join(dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.fs.SyncDir(dir)
	}
	return err
}

// neverUsed reports whether a log without a definition is one that was being made when the
// broker was killed. No client has heard of it. That it holds no event is checked all the same:
// its definition may have been durable for a moment and then lost by damage.
func (s *Set) neverUsed(ctx context.Context, name string) bool {
	files, err := s.fs.List(path.Join(root, name))
	if err != nil || !slices.Contains(files, unfinished) {
		return false
	}
	if len(files) == 1 {
		return true
	}
	l, err := s.open(ctx, name, streamserver.Settings{Partitions: 1})
	if err != nil {
		s.log.Warn("cannot tell whether a log without a hub holds events", "file", root+"/"+name, "err", err)
		return false
	}
	empty := l.hub.NeverUsed()
	if err := l.close(); err != nil {
		s.log.Warn("cannot close a log without a hub", "file", root+"/"+name, "err", err)
		return false
	}
	return empty
}
