// SPDX-License-Identifier: Apache-2.0

// Package wal keeps a journal on one disk.
package wal

import (
	"context"
	"errors"
	"iter"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/vfs"
)

// Options are the settings of a WAL; the zero value is ready to use.
type Options struct {
	// SegmentSize is the block of the journal, in bytes; default 64 MiB. A
	// store keeps the size it was made with.
	SegmentSize uint64
	// Seed, if not zero, makes the salts of segments predictable.
	Seed uint64
}

// ErrFull means that the disk is full and the reserve used up. The group was
// not appended; the journal goes on when space is freed.
var ErrFull = errors.New("wal: disk is full")

// WAL is a journal on one disk.
type WAL struct{}

var _ journal.Journal = (*WAL)(nil)

// Open recovers the store in the root of fs, or makes a new one.
func Open(fs vfs.FS, opts Options) (*WAL, error) { panic("being written") }

// Run commits until ctx ends or the disk fails.
func (w *WAL) Run(ctx context.Context) error { panic("being written") }

// Commit does one commit step: one batch written and synced, watchers told.
func (w *WAL) Commit() error { panic("being written") }

// Close commits what is pending, and closes the store. Run must have returned.
func (w *WAL) Close() error { panic("being written") }

// Claim implements journal.Journal.
func (w *WAL) Claim(shard journal.Shard) (journal.Claim, iter.Seq2[journal.Record, error], error) {
	panic("being written")
}

// Append implements journal.Journal.
func (w *WAL) Append(c journal.Claim, records [][]byte, at []journal.Position) error {
	panic("being written")
}

// Read implements journal.Journal.
func (w *WAL) Read(at journal.Position, dst []byte) ([]byte, error) { panic("being written") }

// Truncate implements journal.Journal.
func (w *WAL) Truncate(c journal.Claim, keep journal.Keep) error { panic("being written") }

// Watch implements journal.Journal.
func (w *WAL) Watch(c journal.Claim, fn func(journal.Status)) { panic("being written") }
