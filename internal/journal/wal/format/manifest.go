// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/triagemq/triagemq/internal/journal"
)

const (
	// ManifestName and ManifestCopy are the two files of the manifest.
	ManifestName = "MANIFEST"
	ManifestCopy = "MANIFEST.copy"
	// ManifestNext is a manifest in the making. It becomes one of the two by
	// being renamed.
	ManifestNext = "MANIFEST.next"
	LockName     = "LOCK"

	ManifestFormat  = "triagemq-journal %d %08x %d\n" // version, checksum and length of the rest
	ManifestVersion = 2
	ManifestLimit   = 64 << 20
)

// Manifest is what a store knows about itself beside the log.
type Manifest struct {
	// Generation grows with each manifest that is written; zero is version 1,
	// which had none.
	Generation  uint64 `json:"generation,omitempty"`
	SegmentSize uint64 `json:"segmentSize"`
	// Synced is where the log ended, at least, when this was written.
	Synced journal.Position                 `json:"synced"`
	Shards map[journal.Shard]*ShardManifest `json:"shards"`

	Version int `json:"-"` // with which it was read
}

// ShardManifest is the part of one shard.
type ShardManifest struct {
	Epoch    uint32           `json:"epoch"`
	From     journal.Position `json:"from"`
	Segments SegmentList      `json:"blocks,omitempty"`
}

// Segment returns the number of the segment that holds at.
func (m *Manifest) Segment(at journal.Position) uint64 { return uint64(at) / m.SegmentSize }

// Needs returns the first segment from which on every one is needed, and those
// before it that are needed too.
func (m *Manifest) Needs() (from uint64, kept map[uint64]bool) {
	from = max(1, m.Segment(m.Synced))
	for _, s := range m.Shards {
		from = min(from, m.Segment(s.From))
	}
	kept = make(map[uint64]bool)
	for _, s := range m.Shards {
		for _, b := range s.Segments {
			kept[b] = true
		}
	}
	return from, kept
}

// Encode returns the manifest as it is written to its files.
func (m *Manifest) Encode() ([]byte, error) {
	body, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return withHead(body), nil
}

// EncodeCompact returns the manifest as it is written to the log.
func (m *Manifest) EncodeCompact() ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return withHead(body), nil
}

// withHead puts the first line before what follows it.
func withHead(body []byte) []byte {
	head := fmt.Sprintf(ManifestFormat, ManifestVersion, SumManifest(ManifestVersion, body), len(body))
	return append([]byte(head), body...)
}

// SumManifest is CRC-32C, started from the version, so that a manifest of a
// version that is not known can be distinguished from a damaged one. Version 1 started
// from zero.
func SumManifest(version int, body []byte) uint32 {
	if version == 1 {
		version = 0
	}
	return crc32.Update(uint32(version), castagnoli, body)
}

// DecodeManifest reads a manifest at the front of b, which is the contents of the
// named file. What follows it means nothing.
func DecodeManifest(name string, b []byte) (*Manifest, error) {
	bad := func(err error) error { return &DamageError{name, 0, err} }
	head, rest, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		return nil, bad(errNoManifest)
	}
	var version, length int
	var sum uint32
	if _, err := fmt.Sscanf(string(head)+"\n", ManifestFormat, &version, &sum, &length); err != nil {
		return nil, bad(errNoManifest)
	}
	// Scanning forgives what encoding does not write; a flipped bit must not
	// hide there.
	if string(head)+"\n" != fmt.Sprintf(ManifestFormat, version, sum, length) {
		return nil, bad(errNoManifest)
	}
	if length < 0 || length > len(rest) || version == 1 && length < len(rest) {
		return nil, bad(ErrLength)
	}
	body := rest[:length]
	switch {
	case SumManifest(version, body) != sum:
		return nil, bad(ErrChecksum)
	case version != 1 && version != ManifestVersion:
		return nil, fmt.Errorf("%s: version %d is not known", name, version)
	}
	m := &Manifest{Version: version}
	if err := json.Unmarshal(body, m); err != nil {
		return nil, bad(err)
	}
	if err := CheckSegmentSize(m.SegmentSize); err != nil {
		return nil, bad(err)
	}
	if m.Shards == nil {
		m.Shards = make(map[journal.Shard]*ShardManifest)
	}
	for shard, s := range m.Shards {
		if s == nil {
			return nil, bad(fmt.Errorf("shard %d is empty", shard))
		}
	}
	return m, nil
}

var errNoManifest = errors.New("not a manifest")
