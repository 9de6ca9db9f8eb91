// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
)

const (
	// markEvery is how often the manifest records how far the log has been synced,
	// at most.
	markEvery = time.Second
	// markBytes is how large a manifest may be that is written so often. Larger
	// ones, of stores with very many segments, are written as many times less often.
	markBytes = 64 << 10
)

// keepMarked writes the manifest anew some time after a commit, so that it says
// where the log ends. Batches prove each other: a later one says that those before
// it were synced. But the last ones, which may share a page, have nothing behind
// them, and damage to that page would pass for a crash that tore them. With the
// mark it does not, but for what was synced since the mark. It costs no commit
// anything: the files are others, and it is done beside.
func (w *WAL) keepMarked(ctx context.Context) {
	pause := markEvery
	for {
		select {
		case <-w.committed:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return // Close writes the manifest too
		}
		size, err := w.writeMark()
		switch {
		case errors.Is(err, journal.ErrFull):
			w.committed.Notify() // another time
		case err != nil:
			return // Run gets it from w.fail
		}
		pause = markEvery * time.Duration(1+size/markBytes)
	}
}

// writeMark writes the manifest anew if the log has been synced further since, and
// returns the size of its files. It is not worth the reserve: without space it is
// left to the next time.
func (w *WAL) writeMark() (size uint64, err error) {
	w.manifestToken <- struct{}{}
	defer func() { <-w.manifestToken }()
	w.mu.Lock()
	m := w.manifest()
	err = w.usable()
	w.mu.Unlock()
	if err == nil && m.Synced != w.marked {
		err = w.writeManifestOnce(m)
	}
	return w.copies.Sizes[0], err
}
