// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Stored is a definition in a Store, with the settings of the queues of the entity.
type Stored struct {
	Meta     []byte
	Sessions bool // messages have sessions; fixed when the entity is created
	Configs  map[queueserver.SubQueue]queue.Config
}

// Store is where definitions are durable. The effect of a method is durable when it
// returns.
type Store interface {
	// Load returns the definitions that a shard had when it was opened.
	Load(s *queueserver.Shard) []queueserver.Definition
	Create(n *Entity, def Stored) (queueserver.ID, error)
	Update(n *Entity, def Stored) error
	// Delete removes entities of one shard, with their messages.
	Delete(ns ...*Entity) error
}

// shardStore stores a definition in the shard of its entity, in one group with the changes
// of its queues.
type shardStore struct{}

func (shardStore) Load(s *queueserver.Shard) []queueserver.Definition { return s.Definitions() }

func (shardStore) Create(n *Entity, def Stored) (queueserver.ID, error) {
	return queueserver.Finish(n.Shard, queueserver.Define{
		Definition: queueserver.Definition{Name: n.Path, Meta: def.Meta, Sessions: def.Sessions},
		Configs:    def.Configs,
	})
}

func (shardStore) Update(n *Entity, def Stored) error {
	_, err := queueserver.Finish(n.Shard, queueserver.Configure{ID: n.ID, Meta: def.Meta, Configs: def.Configs})
	return err
}

func (shardStore) Delete(ns ...*Entity) error {
	o := queueserver.Drop{}
	for _, n := range ns {
		o.IDs = append(o.IDs, n.ID)
	}
	_, err := queueserver.Finish(ns[0].Shard, o)
	return err
}
