// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"errors"
	"maps"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
)

// rebuildManifest makes a manifest from the segments, both files of it being
// lost. The log holds each one that was written, so the last of them is the one
// that is wanted: see logManifest.
func (r *repairer) rebuildManifest(reason error) error {
	if r.offline == nil || len(r.files.Segments) == 0 {
		return reason
	}
	if err := r.restoreHeads(); err != nil {
		return err
	}
	sc := scan{shards: make(map[journal.Shard]*format.ShardManifest)}
	for _, n := range r.files.Segments {
		seg, err := store.OpenSegment(r.fs, n, 0)
		if errors.Is(err, store.ErrRecycled) || errors.Is(err, journal.ErrCorrupt) {
			continue // being recycled, or damaged: nothing can be learnt from it
		}
		if err != nil {
			return err
		}
		err = sc.add(seg)
		if err := errors.Join(err, seg.File.Close()); err != nil {
			return err
		}
	}
	switch {
	case len(sc.numbers) == 0:
		return reason
	case sc.logged != nil:
		r.manifest = sc.fromLog()
		r.restored(reason)
	default:
		r.manifest = sc.guess()
		r.drop(Dropped{File: format.ManifestName, Reason: reason})
	}
	return r.writeManifest()
}

// scan is what the segments of a store without a manifest tell.
type scan struct {
	segmentSize uint64
	numbers     []uint64 // of the segments with a batch, in order
	// shards are those that records were seen of, with the highest epoch, and the
	// place of the first record.
	shards map[journal.Shard]*format.ShardManifest
	logged *format.Manifest // the last one in the log
}

// add notes what is in a segment; they come in order.
func (sc *scan) add(seg *store.Segment) error {
	sc.segmentSize = seg.Head.SegmentSize
	begun := false
	for sp, err := range seg.Spans() {
		if err != nil {
			return err
		}
		if sp.Err != nil {
			continue
		}
		begun = true
		for at, f := range format.Frames(sp.Body) {
			switch f.Shard {
			case format.TombstoneShard:
			case format.OwnShard:
				m, err := format.DecodeManifest(seg.Name, f.Payload)
				if err != nil {
					return err // its checksum is right, so it is of a later version
				}
				sc.logged = m
			default:
				s := sc.shards[f.Shard]
				if s == nil {
					s = &format.ShardManifest{From: seg.Position(sp.Off + uint64(at))}
					sc.shards[f.Shard] = s
				}
				s.Epoch = max(s.Epoch, f.Epoch)
			}
		}
	}
	if begun {
		sc.numbers = append(sc.numbers, seg.Number)
	}
	return nil
}

// fromLog returns the last manifest of the log, with what the log says beyond it.
func (sc *scan) fromLog() *format.Manifest {
	m := sc.logged
	for n, seen := range sc.shards {
		s := m.Shards[n]
		if s == nil {
			// Its claim is in a manifest that was damaged too.
			m.Shards[n] = seen
			continue
		}
		s.Epoch = max(s.Epoch, seen.Epoch)
	}
	return m
}

// guess makes a manifest for a log that holds none, because no shard was claimed
// since version 1. Where the shards wanted to start is lost. It can be no earlier
// than the segment from which on none is missing, so that is where they start, and
// all that lie before it are kept.
func (sc *scan) guess() *format.Manifest {
	i := len(sc.numbers) - 1
	for i > 0 && sc.numbers[i-1]+1 == sc.numbers[i] {
		i--
	}
	from := journal.Position(sc.numbers[i]*sc.segmentSize + format.HeaderSize)
	m := &format.Manifest{SegmentSize: sc.segmentSize, Synced: from, Shards: make(map[journal.Shard]*format.ShardManifest)}
	for _, n := range slices.Sorted(maps.Keys(sc.shards)) {
		m.Shards[n] = &format.ShardManifest{Epoch: sc.shards[n].Epoch, From: from, Segments: slices.Clone(sc.numbers[:i])}
	}
	return m
}
