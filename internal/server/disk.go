// SPDX-License-Identifier: Apache-2.0

package server

import (
	"log/slog"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/admin/metrics"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/vfs"
)

// disk is a journal that logs when its disk is full, and when there is space
// again. Otherwise only senders would notice, by being rejected.
type disk struct {
	journal.Journal
	log  *slog.Logger
	full atomic.Bool // what was logged last
}

// Watch passes on what the journal tells each shard. All of them hear the same.
func (d *disk) Watch(c journal.Claim, fn func(journal.Status)) {
	d.Journal.Watch(c, func(s journal.Status) {
		if s.Err == nil && d.full.Swap(s.Full) != s.Full {
			d.tell(s.Full)
		}
		fn(s)
	})
}

func (d *disk) tell(full bool) {
	if full {
		d.log.Error("disk is full: rejecting sends, delivery continues; free disk space, or receive or purge messages")
		return
	}
	d.log.Info("disk has space again: sends are accepted")
}

// diskStats returns what the metrics tell about the disk. What is free is asked
// for each time: others use the disk, too.
func diskStats(j *wal.WAL, fsys vfs.FS) func() metrics.Disk {
	return func() metrics.Disk {
		s := j.Stats()
		d := metrics.Disk{Free: -1, Available: s.Available, Reserved: s.Reserved, Unsynced: s.Unsynced, Full: s.Full, Busy: s.Busy}
		if space, err := fsys.Space(); err == nil {
			d.Free = space.Free
		}
		return d
	}
}
