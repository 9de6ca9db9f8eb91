// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/vfs"
)

const (
	manifestName = "MANIFEST"
	// manifestNext is written and then renamed to manifestName. It is made
	// ahead of need, because on a full disk Truncate, which is what frees
	// space, must not need any.
	manifestNext = "MANIFEST.next"
	lockName     = "LOCK"

	manifestFormat  = "triagemq-journal %d %08x %d\n" // version, CRC-32C and length of the rest
	manifestVersion = 1
	manifestLimit   = 64 << 20
)

// manifest is what a store knows about itself beside the log.
type manifest struct {
	SegmentSize uint64 `json:"segmentSize"`
	// Synced is where the log ended, at least, when this was written.
	Synced journal.Position                 `json:"synced"`
	Shards map[journal.Shard]*shardManifest `json:"shards"`
}

// shardManifest is the part of one shard.
type shardManifest struct {
	Epoch  uint32           `json:"epoch"`
	From   journal.Position `json:"from"`
	Blocks []uint64         `json:"blocks,omitempty"`
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

func (m *manifest) encode() ([]byte, error) {
	body, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	head := fmt.Sprintf(manifestFormat, manifestVersion, crc32.Checksum(body, castagnoli), len(body))
	return append([]byte(head), body...), nil
}

func decodeManifest(b []byte) (*manifest, error) {
	bad := func(err error) error { return &DamageError{manifestName, 0, err} }
	head, body, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		return nil, bad(errors.New("not a manifest"))
	}
	var version, length int
	var sum uint32
	if _, err := fmt.Sscanf(string(head)+"\n", manifestFormat, &version, &sum, &length); err != nil {
		return nil, bad(err)
	}
	// Scanning forgives what encoding does not write; a flipped bit must not
	// hide there.
	if string(head)+"\n" != fmt.Sprintf(manifestFormat, version, sum, length) {
		return nil, bad(errors.New("not a manifest"))
	}
	switch {
	case version != manifestVersion:
		return nil, bad(fmt.Errorf("manifest version %d is not known", version))
	case length != len(body):
		return nil, bad(errLength)
	case crc32.Checksum(body, castagnoli) != sum:
		return nil, bad(errChecksum)
	}
	m := new(manifest)
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

// readManifest returns nil if there is none.
func readManifest(fsys vfs.FS) (*manifest, error) {
	file, err := fsys.Open(manifestName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	defer file.Close() // only read
	size, err := file.Size()
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	b := make([]byte, min(size, manifestLimit))
	if _, err := file.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return decodeManifest(b)
}

// write replaces the manifest; the new one is durable when it returns.
func (m *manifest) write(fsys vfs.FS) error {
	b, err := m.encode()
	if err != nil {
		return err
	}
	if err := writeNext(fsys, b); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := fsys.Rename(manifestNext, manifestName); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := fsys.SyncDir("."); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return reserveNext(fsys, len(b))
}

// writeNext fills manifestNext, over the bytes that reserveNext has put there.
func writeNext(fsys vfs.FS, b []byte) error {
	file, err := fsys.Open(manifestNext)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = fsys.Create(manifestNext)
	}
	if err != nil {
		return err
	}
	_, err = file.WriteAt(b, 0)
	if err == nil {
		err = file.Truncate(int64(len(b)))
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// reserveNext makes the file for the next manifest, with room to grow. A full
// disk is not an error: the next write will try again, with what is free then.
func reserveNext(fsys vfs.FS, size int) error {
	file, err := fsys.Create(manifestNext)
	if err == nil {
		err = zero(file, 0, uint64(2*size+4096))
		err = errors.Join(err, file.Close())
	}
	if err != nil && !errors.Is(err, vfs.ErrNoSpace) && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("reserve manifest: %w", err)
	}
	return nil
}
