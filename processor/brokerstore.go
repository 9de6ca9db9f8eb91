// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"strconv"
	"time"

	"github.com/triagemq/triagemq/client"
)

// NewBrokerStore makes a store that is our own broker: no other service is needed. The
// broker refuses claims of a group that it coordinates.
func NewBrokerStore(c *client.Client) CheckpointStore { return &brokerStore{c} }

type brokerStore struct{ client *client.Client }

func (s *brokerStore) ListOwnership(ctx context.Context, scope Scope) ([]Ownership, time.Time, error) {
	records, err := s.client.Group(scope.Hub, scope.Group).Ownership(ctx)
	return ownerships(scope, records), time.Time{}, err
}

func (s *brokerStore) ClaimOwnership(ctx context.Context, claims []Ownership) ([]Ownership, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	scope := claims[0].Scope // those of one call have the same
	out := make([]client.Ownership, len(claims))
	for i, c := range claims {
		out[i] = client.Ownership{Partition: c.Partition, Owner: c.Owner, ETag: c.ETag}
	}
	won, err := s.client.Group(scope.Hub, scope.Group).Claim(ctx, out)
	return ownerships(scope, won), err
}

func ownerships(scope Scope, records []client.Ownership) []Ownership {
	out := make([]Ownership, len(records))
	for i, r := range records {
		out[i] = Ownership{Scope: scope, Partition: r.Partition, Owner: r.Owner, ETag: r.ETag, Modified: r.Modified}
	}
	return out
}

func (s *brokerStore) ListCheckpoints(ctx context.Context, scope Scope) ([]Checkpoint, error) {
	records, err := s.client.Group(scope.Hub, scope.Group).Checkpoints(ctx)
	out := make([]Checkpoint, len(records))
	for i, r := range records {
		out[i] = Checkpoint{Scope: scope, Partition: r.Partition, SeqNo: r.SeqNo, Offset: strconv.FormatInt(int64(r.SeqNo), 10)}
	}
	return out, err
}

func (s *brokerStore) SetCheckpoint(ctx context.Context, c Checkpoint) error {
	if c.SeqNo < 0 {
		c.SeqNo = beginning
	}
	return s.client.Group(c.Hub, c.Group).SetCheckpoint(ctx, client.Checkpoint{Partition: c.Partition, SeqNo: c.SeqNo})
}
