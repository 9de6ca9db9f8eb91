// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"
	"time"
)

// markEvery is how often the manifest is told how far the log has been synced, at
// most.
const markEvery = time.Second

// keepMarked writes the manifest anew some time after a commit, so that it says
// where the log ends. Batches prove each other: a later one says that those before
// it were synced. But the last ones, which may share a page, have nothing behind
// them, and damage to that page would pass for a crash that tore them. With the
// mark it does not, but for what was synced since the mark. It costs no commit
// anything: the files are others, and it is done beside.
func (w *WAL) keepMarked(ctx context.Context) {
	for {
		select {
		case <-w.committed:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(markEvery):
		case <-ctx.Done():
			return // Close writes the manifest too
		}
		if err := w.writeMark(); err != nil && !errors.Is(err, ErrFull) {
			return // w.fail has told Run
		}
	}
}

// writeMark writes the manifest anew if the log has been synced further since.
func (w *WAL) writeMark() error {
	w.governing <- struct{}{}
	defer func() { <-w.governing }()
	w.mu.Lock()
	err, m := w.usable(), w.manifest()
	w.mu.Unlock()
	if err != nil || m.Synced == w.marked {
		return err
	}
	return w.govern(m)
}
