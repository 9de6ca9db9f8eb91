// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/notify"
	"github.com/triagemq/triagemq/internal/vfs"
)

// Options are the settings of a WAL; the zero value is ready to use.
type Options struct {
	// SegmentSize is the size of a segment, in bytes; default 64 MiB. A
	// store keeps the size it was made with. On a small disk the files are
	// smaller than that.
	SegmentSize uint64
	// Unsynced is how many bytes may wait for the disk before senders are
	// refused; default 64 MiB.
	Unsynced uint64
	// Small is for a store of which there are many on the disk: it begins with little space,
	// and has more ready only as it is used.
	Small bool
}

const defaultSegmentSize = 64 << 20

// WAL is a journal on one disk.
type WAL struct {
	fs          vfs.FS
	lock        io.Closer
	segmentSize uint64 // fixed

	unsynced uint64 // bytes that may wait for the disk; fixed
	small    bool   // see Options; fixed

	// Tokens are locks that are held across calls to the disk, as mu never is. A
	// goroutine puts a value into the channel, works, and takes it out again.
	//
	//	             manifestToken    segmentToken      writeToken
	//	Claim        whole call       if none is ready  for each batch
	//	Truncate     whole call       if none is ready  for each batch
	//	Close        whole call                         for each batch
	//	keepMarked   one manifest
	//	Append                        if none is ready
	//	preallocate                   one segment
	//	Commit                        one segment       one batch
	//	Release                                         for each batch
	//
	// A goroutine that needs more than one takes them from left to right. None has the
	// segment token and the write token at once. If Commit, while it writes, could
	// ask for the manifest token, and Truncate, which has it, waits for Commit to
	// write the records before its new beginning, neither would go on.
	manifestToken chan struct{} // the manifest: its copies, generation, what is freed
	segmentToken  chan struct{} // segments and spares that are made ready
	writeToken    chan struct{} // batches that are written, and calls to watchers

	wake notify.Signal // for Run: something is pending or the status changed
	// committed, for Run's keepMarked: the log was synced further.
	committed     notify.Signal
	low           notify.Signal // for the preallocator of Run: the pool is low
	preallocating atomic.Bool   // the preallocator of Run is there, Commit need not do its work
	stopping      atomic.Bool   // Run is about to return, and its preallocator must not keep it
	spareID       atomic.Uint64 // the last one used

	due []func(journal.Status) // owned by notifyWatchers

	copies     store.Copies     // of the manifest; owned by the holder of manifestToken
	generation uint64           // of the last manifest; owned likewise
	marked     journal.Position // what that says is synced; owned likewise

	mu      sync.Mutex // guards everything below, and never is held across IO
	log     tail
	pool    segmentPool
	shards  map[journal.Shard]*shard
	watched []*shard                  // those of shards with a watcher, in order of their number
	ended   []func(journal.Status)    // watchers of claims that have ended, to be called once more
	segs    map[uint64]*store.Segment // every one that can be read, the active one included
	status  journal.Status            // what watchers get
	changes uint64                    // of status.Full and status.Busy, so that none is missed
	stats   Stats
	closed  bool
}

// tail is the end of the log, where appending happens.
type tail struct {
	active *store.Segment
	off    uint64 // in active: where the next batch, or the next group of the last one, begins
	sealed bool   // active takes no more; only while a store is opened
	number uint64 // of the next record
	// pending are the batches not yet written, oldest first; the last one is
	// open for more if it holds records.
	pending []*batch
	// writing is the batch that the committer has in hand.
	writing *batch
	unused  []*batch         // those whose buffers can be used again, at most maxUnused
	synced  journal.Position // behind the last batch that is safe

	appended  uint64 // bytes of frames, ever
	unsynced  uint64 // bytes in pending and writing
	congested bool   // those are too many
	stalled   bool   // the disk has no space for the oldest of them
}

// shard is what is known of one shard.
type shard struct {
	number journal.Shard
	format.ShardManifest
	watch      func(journal.Status)
	lastStatus journal.Status      // the last one that watch was called with
	changes    uint64              // of that status; an owner that was refused meanwhile waits for a call
	released   bool                // its claim was, and no other has followed
	reserved   journal.Reservation // for upkeep that its owner may need at once
}

var _ journal.Journal = (*WAL)(nil)

// Close commits what is pending, marks the store as closed cleanly, and
// releases it. Run must have returned before.
func (w *WAL) Close() error {
	w.manifestToken <- struct{}{}
	defer func() { <-w.manifestToken }()

	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return journal.ErrClosed
	}
	w.closed = true
	if w.status.Err == nil {
		w.appendStop()
	}
	w.mu.Unlock()

	err := w.flush()
	if err == nil {
		w.mu.Lock()
		m := w.manifest() // knows where the log ends, should the last file be lost
		w.mu.Unlock()
		if err = w.writeManifestOnce(m); errors.Is(err, journal.ErrFull) {
			err = nil // a courtesy only
		}
	}
	return errors.Join(err, w.release())
}

// appendStop puts an empty batch at the end of the log; mu is held. It proves
// to the next Open that the batch before it was synced, so that damage to that
// batch does not pass for a torn write. When there is no space for it the seal says the
// same, if there is a segment behind for the log to go on in; if not the manifest
// has to say it alone.
func (w *WAL) appendStop() {
	switch {
	case w.log.active.FreeAfter(w.log.off) >= format.BatchHeader:
		w.push(format.KindStop)
	case w.pool.first() != nil:
		w.push(format.KindSeal)
	}
}

// release closes every file and the lock.
func (w *WAL) release() error {
	w.mu.Lock()
	segs, pool := w.segs, w.pool
	w.segs = nil
	w.pool = pool.emptied()
	w.mu.Unlock()

	var errs []error
	for _, s := range segs {
		errs = append(errs, s.File.Close())
	}
	for _, s := range pool.ready {
		errs = append(errs, s.File.Close())
	}
	for _, p := range pool.spares {
		errs = append(errs, p.File.Close())
	}
	return errors.Join(append(errs, w.copies.Close(), w.lock.Close())...)
}

// Stats counts what a WAL did since it was opened, and says what it holds.
type Stats struct {
	Batches  uint64 // written and synced
	Records  uint64 // in them
	Bytes    uint64 // of them
	Segments int    // that hold records, or may soon
	Ready    int    // segments ready to follow
	Spares   int    // files that can become segments

	Unsynced  uint64 // bytes that wait for the disk
	Available uint64 // bytes that can still be appended without making a file
	Reserved  uint64 // of those, the bytes that senders must leave
	Full      bool   // senders are refused because no more than that is left
	Busy      bool   // senders are refused for the moment
}

// Stats returns the counts as they are now.
func (w *WAL) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.Segments, s.Ready, s.Spares = len(w.segs), len(w.pool.ready), len(w.pool.spares)
	if w.segs != nil {
		s.Unsynced, s.Available, s.Reserved = w.log.unsynced, w.available(), w.pool.target
	}
	s.Full, s.Busy = w.status.Full, w.status.Busy
	return s
}

// usable returns why nothing can be written any more, if so; mu is held.
func (w *WAL) usable() error {
	if w.closed {
		return journal.ErrClosed
	}
	return w.status.Err
}

// owner returns the state of the claim's shard, if the claim still holds; mu is
// held.
func (w *WAL) owner(c journal.Claim) (*shard, error) {
	if err := w.usable(); err != nil {
		return nil, err
	}
	s := w.shards[c.Shard]
	if s == nil || s.Epoch != c.Epoch || s.released {
		return nil, journal.ErrFenced
	}
	return s, nil
}

// fail makes err final and returns it as everyone will see it from now on.
func (w *WAL) fail(err error) error {
	w.mu.Lock()
	w.status.Err = cmp.Or(w.status.Err, fmt.Errorf("%w: %w", journal.ErrFailed, err))
	err = w.status.Err
	w.mu.Unlock()
	w.wake.Notify()
	return err
}
