// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/journal"
)

// cut is a journal of which a repair has dropped what came behind a record, until another.
type cut struct {
	journal.Journal
	behind, until journal.Position
	last          journal.Position // that was read
}

func (c *cut) Claim(ctx context.Context, shards ...journal.Shard) ([]journal.Claim, iter.Seq2[journal.Record, error], error) {
	claims, records, err := c.Journal.Claim(ctx, shards...)
	return claims, func(yield func(journal.Record, error) bool) {
		for rec, err := range records {
			if c.last = max(c.last, rec.At); rec.At > c.behind && rec.At <= c.until {
				rec = journal.Record{Shard: rec.Shard, Lost: 1}
			}
			if !yield(rec, err) {
				return
			}
		}
	}, err
}

// A repair may drop all that there is of the groups. Owners of that time stay fenced.
func TestEpochsAreNotUsedAgainWhenAllGroupsAreLost(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	r.append(0, 10, 100)
	var c *cut
	behind, until := journal.Position(0), journal.Position(0)
	r.wrap = func(j journal.Journal) journal.Journal {
		c = &cut{Journal: j, behind: behind, until: until}
		return c
	}
	r.crash(0)
	r.settle()
	behind = c.last
	r.join("a", "1")
	r.pass(window)
	old := r.h.groups.m.Epoch("g", 0)
	r.crash(1)
	r.settle()
	until = c.last
	r.crash(2)
	if r.h.groups != nil {
		t.Fatal("the groups are not lost")
	}
	for seed := range uint64(2) {
		b := r.join("b", "1")
		r.pass(window)
		if now := r.h.groups.m.Epoch("g", 0); old < 1 || now <= old {
			t.Fatalf("epoch %d after %d", now, old)
		}
		if err := r.checkpoint(0, old, 5); !errors.Is(err, group.ErrFenced) {
			t.Errorf("a checkpoint of the owner before: %v", err)
		}
		now := b.has
		r.crash(3 + seed)
		b = r.join("b", "1")
		r.settle()
		if b.has.Grants[0].Epoch != now.Grants[0].Epoch {
			t.Errorf("after a crash %+v, before %+v", b.has, now)
		}
	}
}
