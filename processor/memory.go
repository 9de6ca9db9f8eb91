// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"strconv"
	"sync"
	"time"
)

// NewMemoryStore makes a store in memory, for tests and for several instances in one
// process. It forgets everything with the process.
func NewMemoryStore() CheckpointStore {
	return &memoryStore{owners: map[key]Ownership{}, checkpoints: map[key]Checkpoint{}}
}

type memoryStore struct {
	mu          sync.Mutex
	writes      int64 // of ownership; numbers the ETags
	owners      map[key]Ownership
	checkpoints map[key]Checkpoint
}

type key struct {
	Scope
	partition string
}

func (m *memoryStore) ListOwnership(_ context.Context, s Scope) ([]Ownership, time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Ownership
	for _, o := range m.owners {
		if o.Scope == s {
			out = append(out, o)
		}
	}
	return out, time.Now(), nil
}

func (m *memoryStore) ClaimOwnership(_ context.Context, claims []Ownership) ([]Ownership, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var won []Ownership
	for _, c := range claims {
		k := key{c.Scope, c.Partition}
		if m.owners[k].ETag != c.ETag {
			continue
		}
		m.writes++
		c.ETag, c.Modified = strconv.FormatInt(m.writes, 10), time.Now()
		m.owners[k] = c
		won = append(won, c)
	}
	return won, nil
}

func (m *memoryStore) ListCheckpoints(_ context.Context, s Scope) ([]Checkpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Checkpoint
	for _, c := range m.checkpoints {
		if c.Scope == s {
			out = append(out, c)
		}
	}
	return out, nil
}

func (m *memoryStore) SetCheckpoint(_ context.Context, c Checkpoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checkpoints[key{c.Scope, c.Partition}] = c
	return nil
}
