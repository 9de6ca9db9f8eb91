// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/triagemq/triagemq/internal/journal"
)

const (
	// manifestName and manifestCopy are the two files of the manifest: see copies.
	manifestName = "MANIFEST"
	manifestCopy = "MANIFEST.copy"
	// manifestNext is a manifest in the making. It becomes one of the two by
	// being renamed.
	manifestNext = "MANIFEST.next"
	lockName     = "LOCK"

	manifestFormat  = "triagemq-journal %d %08x %d\n" // version, checksum and length of the rest
	manifestVersion = 2
	manifestLimit   = 64 << 20
)

// manifest is what a store knows about itself beside the log.
type manifest struct {
	// Generation grows with each manifest that is written; zero is version 1,
	// which had none.
	Generation  uint64 `json:"generation,omitempty"`
	SegmentSize uint64 `json:"segmentSize"`
	// Synced is where the log ended, at least, when this was written.
	Synced journal.Position                 `json:"synced"`
	Shards map[journal.Shard]*shardManifest `json:"shards"`

	version int // with which it was read
}

// shardManifest is the part of one shard.
type shardManifest struct {
	Epoch  uint32           `json:"epoch"`
	From   journal.Position `json:"from"`
	Blocks blocks           `json:"blocks,omitempty"`
}

func (m *manifest) block(at journal.Position) uint64 { return uint64(at) / m.SegmentSize }

// needs returns the first block from which on every one is needed, and those
// before it that are needed too.
func (m *manifest) needs() (from uint64, blocks map[uint64]bool) {
	from = max(1, m.block(m.Synced))
	for _, s := range m.Shards {
		from = min(from, m.block(s.From))
	}
	blocks = make(map[uint64]bool)
	for _, s := range m.Shards {
		for _, b := range s.Blocks {
			blocks[b] = true
		}
	}
	return from, blocks
}

// encode returns the manifest as it is written to its files.
func (m *manifest) encode() ([]byte, error) {
	body, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return withHead(body), nil
}

// encodeCompact returns the manifest as it is written to the log.
func (m *manifest) encodeCompact() ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return withHead(body), nil
}

func withHead(body []byte) []byte {
	head := fmt.Sprintf(manifestFormat, manifestVersion, sumManifest(manifestVersion, body), len(body))
	return append([]byte(head), body...)
}

// sumManifest is CRC-32C, started from the version, so that a manifest of a
// version that is not known can be told from a damaged one. Version 1 started
// from zero.
func sumManifest(version int, body []byte) uint32 {
	if version == 1 {
		version = 0
	}
	return crc32.Update(uint32(version), castagnoli, body)
}

// decodeManifest reads a manifest at the front of b, which is the contents of the
// named file. What follows it means nothing.
func decodeManifest(name string, b []byte) (*manifest, error) {
	bad := func(err error) error { return &DamageError{name, 0, err} }
	head, rest, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		return nil, bad(errNoManifest)
	}
	var version, length int
	var sum uint32
	if _, err := fmt.Sscanf(string(head)+"\n", manifestFormat, &version, &sum, &length); err != nil {
		return nil, bad(errNoManifest)
	}
	// Scanning forgives what encoding does not write; a flipped bit must not
	// hide there.
	if string(head)+"\n" != fmt.Sprintf(manifestFormat, version, sum, length) {
		return nil, bad(errNoManifest)
	}
	if length < 0 || length > len(rest) || version == 1 && length < len(rest) {
		return nil, bad(errLength)
	}
	body := rest[:length]
	switch {
	case sumManifest(version, body) != sum:
		return nil, bad(errChecksum)
	case version != 1 && version != manifestVersion:
		return nil, fmt.Errorf("%s: version %d is not known", name, version)
	}
	m := &manifest{version: version}
	if err := json.Unmarshal(body, m); err != nil {
		return nil, bad(err)
	}
	if err := checkBlock(m.SegmentSize); err != nil {
		return nil, bad(err)
	}
	if m.Shards == nil {
		m.Shards = make(map[journal.Shard]*shardManifest)
	}
	for shard, s := range m.Shards {
		if s == nil {
			return nil, bad(fmt.Errorf("shard %d is empty", shard))
		}
	}
	return m, nil
}

var errNoManifest = errors.New("not a manifest")
