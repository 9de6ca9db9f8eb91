// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/stream"
)

// Checkpoint stores how far partitions are handled, and returns when that is durable. The
// errors are those of the entries: group.ErrFenced, group.ErrBackwards, ErrPartition or a
// PositionError.
func (h *Hub) Checkpoint(ctx context.Context, grp string, cs []group.Checkpoint) ([]error, error) {
	errs := make([]error, len(cs))
	if err := h.do(ctx, h.checkpoint(grp, cs, errs)); err != nil {
		return nil, err
	}
	return errs, nil
}

func (h *Hub) checkpoint(grp string, cs []group.Checkpoint, errs []error) func(*engine.Tx) error {
	return h.settles(func(g *group.Groups, now time.Time) error {
		for i, c := range cs {
			if errs[i] = h.checkPosition(c); errs[i] == nil {
				errs[i] = g.Checkpoint(now, grp, c, &h.eff)
			}
		}
		return nil
	})
}

// checkPosition refuses a checkpoint of an event that there is not: it is of another hub,
// and events would be missed in silence.
func (h *Hub) checkPosition(c group.Checkpoint) error {
	p, err := h.partition(c.Partition)
	if err != nil {
		return err
	}
	if c.SeqNo < 0 && c.SeqNo != group.Beginning || c.SeqNo >= p.m.Next() {
		return &PositionError{Asked: c.SeqNo, Last: p.m.Next() - 1}
	}
	return nil
}

// SetCheckpoint stores a checkpoint without a fence: the partition may have any owner. A
// group that has members refuses it.
func (h *Hub) SetCheckpoint(ctx context.Context, grp string, c group.Checkpoint) error {
	return h.do(ctx, h.setCheckpoint(grp, c))
}

func (h *Hub) setCheckpoint(grp string, c group.Checkpoint) func(*engine.Tx) error {
	return h.adds(func(g *group.Groups, now time.Time) error {
		if err := h.checkPosition(c); err != nil {
			return err
		}
		return g.SetCheckpoint(now, grp, c, &h.eff)
	})
}

// Rewind sets the checkpoints of partitions, back or forth, in one step. It returns of each the
// event before the one that is handled next; -1 if that is the first one.
func (h *Hub) Rewind(ctx context.Context, grp string, partitions []int, to stream.Start) ([]stream.SeqNo, error) {
	at := make([]stream.SeqNo, len(partitions))
	for i, p := range partitions {
		n, err := h.find(ctx, p, to)
		if err != nil {
			return nil, fmt.Errorf("partition %d: %w", p, err)
		}
		at[i] = n - 1
	}
	return at, h.do(ctx, h.rewind(grp, partitions, at))
}

func (h *Hub) rewind(grp string, partitions []int, to []stream.SeqNo) func(*engine.Tx) error {
	return h.operates(func(g *group.Groups, now time.Time) error {
		for _, n := range partitions {
			if _, err := h.partition(n); err != nil {
				return err
			}
		}
		if err := h.oneGroup(len(partitions) * (2*(recordSize+len(grp)) + longestID)); err != nil {
			return err
		}
		return g.RewindAll(now, grp, partitions, to, &h.eff)
	})
}

// finders is a group of readers that is no consumer group. They take turns, so that a
// partition never has too many of them.
const finders = "\x00find"

// find returns the number of the event that a reader from there would get first; that of
// the next event if there is none yet.
func (h *Hub) find(ctx context.Context, partition int, from stream.Start) (stream.SeqNo, error) {
	select {
	case h.finding <- struct{}{}:
		defer func() { <-h.finding }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	r, err := h.OpenReader(ctx, ReaderOptions{Partition: partition, Group: finders, From: from})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	for end := r.fetch.end; r.fetch.next < end; { // a position by time may be in a block whose index is not in memory
		if err := r.ask(ctx, 1); err != nil {
			return 0, err
		}
		r.ready = false
		batches, err := r.load(ctx, 1)
		if err != nil {
			return 0, err
		}
		if len(batches) > 0 {
			return batches[0].First + stream.SeqNo(batches[0].Skip), nil
		}
	}
	return r.fetch.next, nil
}

// MoveAway takes a partition from its owner as a planned move. The owner does not get it
// back for the cool-down.
func (h *Hub) MoveAway(ctx context.Context, grp string, partition int, coolDown time.Duration) error {
	return h.do(ctx, h.moveAway(grp, partition, coolDown))
}

func (h *Hub) moveAway(grp string, partition int, coolDown time.Duration) func(*engine.Tx) error {
	return h.operates(func(g *group.Groups, now time.Time) error {
		if _, err := h.partition(partition); err != nil {
			return err
		}
		return g.MoveAway(now, grp, partition, coolDown, &h.eff)
	})
}

// Pause keeps partitions from everybody until a time, all of them if none is given; a zero
// time is no longer. It is one step, however many there are.
func (h *Hub) Pause(ctx context.Context, grp string, partitions []int, until time.Time) error {
	return h.do(ctx, h.pause(grp, partitions, until))
}

func (h *Hub) pause(grp string, partitions []int, until time.Time) func(*engine.Tx) error {
	command := func(g *group.Groups, now time.Time) error {
		for _, n := range partitions {
			if _, err := h.partition(n); err != nil {
				return err
			}
		}
		if err := h.oneGroup(g.PauseBytes(grp, partitions, recordSize)); err != nil {
			return err
		}
		return g.Pause(now, grp, partitions, until, &h.eff)
	}
	if until.IsZero() {
		return h.settles(command) // what is paused can be handled again
	}
	return h.operates(command)
}

// Claim claims partitions for processors that balance by themselves. It returns the claims
// that won, with their new ETags, when they are durable.
func (h *Hub) Claim(ctx context.Context, grp string, cs []group.Ownership) ([]group.Ownership, error) {
	var won []group.Ownership
	if err := h.do(ctx, h.claim(grp, cs, &won)); err != nil {
		return nil, err
	}
	return won, nil
}

func (h *Hub) claim(grp string, cs []group.Ownership, won *[]group.Ownership) func(*engine.Tx) error {
	return h.adds(func(g *group.Groups, now time.Time) error {
		for _, c := range cs {
			if _, err := h.partition(c.Partition); err != nil {
				return err
			}
		}
		var refused error
		for _, c := range cs {
			wins, o, err := g.Claim(now, grp, c, &h.eff)
			switch {
			case errors.Is(err, group.ErrMemory):
				refused = err // it has not won; others of them may be renewed still
			case err != nil:
				return err
			case wins:
				*won = append(*won, o)
			}
		}
		if len(*won) > 0 {
			return nil
		}
		return refused
	})
}

// Claims returns the claims that there are.
func (h *Hub) Claims(ctx context.Context, grp string) ([]group.Ownership, error) {
	var claims []group.Ownership
	err := h.do(ctx, func(*engine.Tx) error {
		if h.groups != nil {
			claims = h.groups.m.Claims(grp)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return claims, nil
}

// ForgetGroup ends all members of a group and forgets it.
func (h *Hub) ForgetGroup(ctx context.Context, grp string) error { return h.do(ctx, h.forget(grp)) }

func (h *Hub) forget(grp string) func(*engine.Tx) error {
	fn := h.settles(func(g *group.Groups, _ time.Time) error {
		g.Forget(grp, &h.eff)
		return nil
	})
	return func(tx *engine.Tx) error {
		if h.groups == nil {
			return nil
		}
		h.pace.earn(paceBurst) // an operator who ends a storm is not refused because of it
		return fn(tx)
	}
}
