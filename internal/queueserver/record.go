// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue"
)

// The kinds of record that are the shard's, beside those of the engine. They are on disk
// and never change.
const (
	kindDefine    = 3  // entity, name, meta: a new entity
	kindRedefine  = 4  // entity, meta
	kindDrop      = 5  // entity
	kindPublished = 6  // entity, count: messages a topic has seen
	kindNote      = 11 // entity, bytes
)

var errRecord = errors.New("queueserver: malformed record")

// record starts a record of the shard's own; the caller appends to s.eff and ends it.
func (s *Shard) record(kind byte, id ID) {
	s.eff.BeginPlain(kind)
	s.eff.Uint(uint64(id))
}

// out returns where a command of the queue writes what it does.
func (s *Shard) out(hq *hostedQueue) *queue.Effects {
	s.tx.WriteAs(&hq.unit)
	return &s.eff
}

// recordDefinition appends what newEntity needs to know, without the number.
func (s *Shard) recordDefinition(e *entity) {
	var flags byte
	if e.Sessions {
		flags |= 1
	}
	s.eff.Byte(flags)
	s.eff.String(e.Name)
	s.eff.Bytes(e.Meta)
}

// readDefinition is the inverse of recordDefinition.
func readDefinition(r *machine.Reader, id ID) Definition {
	return Definition{ID: id, Sessions: r.Byte()&1 != 0, Name: r.String(), Meta: append([]byte(nil), r.Bytes()...)}
}
