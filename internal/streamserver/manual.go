// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/stream"
)

// Manual is a hub whose owner calls Step: simulators. It must not be used while Run is
// running. Its methods do not wait: done is called by a later step.
type Manual struct{ h *Hub }

// Manual returns the hub for an owner who calls Step.
func (h *Hub) Manual() Manual { return Manual{h} }

// Partition returns a partition to look at, and behind which event it is not durable.
func (m Manual) Partition(number int) (p *stream.Partition, end stream.SeqNo) {
	return m.h.partitions[number].m, m.h.partitions[number].end
}

// Partitions returns how many there are.
func (m Manual) Partitions() int { return len(m.h.partitions) }

// OpenReader is [Hub.OpenReader].
func (m Manual) OpenReader(o ReaderOptions, done func(*Reader, error)) error {
	r := m.h.newReader(o)
	return m.h.post(r.open, func(err error) { done(r, err) })
}

// OpenProducer is [Hub.OpenProducer].
func (m Manual) OpenProducer(partition int, asked *Producer, done func(Producer, error)) error {
	var got Producer
	return m.h.post(func(tx *engine.Tx) (err error) {
		got, err = m.h.openProducer(tx, partition, asked)
		return err
	}, func(err error) { done(got, err) })
}

// Configure is [Hub.Configure].
func (m Manual) Configure(set Settings, done func(error)) error {
	return m.h.post(func(*engine.Tx) error { return m.h.configure(set) }, done)
}

// Poll is Next for a caller that steps the hub by hand: it asks if it has not, and
// returns what was answered since. It is not ready while there is no answer.
func (r *Reader) Poll(ctx context.Context, maxBytes int) (batches []Batch, ready bool, err error) {
	if err := r.post(maxBytes); err != nil {
		return nil, false, err
	}
	if !r.ready {
		select {
		case <-r.answered:
			err = r.take()
		default:
			return nil, false, nil
		}
	}
	if r.ready = false; err != nil {
		return nil, false, err
	}
	if batches, err = r.load(ctx, maxBytes); len(batches) == 0 && err == nil {
		err = r.post(maxBytes)
	}
	return batches, len(batches) > 0, err
}

// Groups returns the consumer groups to look at; nil while nobody has needed them.
func (m Manual) Groups() *group.Groups {
	if m.h.groups == nil {
		return nil
	}
	return m.h.groups.m
}

// Join is [Hub.Join].
func (m Manual) Join(o MemberOptions, done func(*Member, error)) error {
	x := &Member{hub: m.h, opts: o}
	return m.h.post(x.join, func(err error) { done(x, err) })
}

// Leave is [Hub.Leave].
func (m Manual) Leave(grp, member string, done func(error)) error {
	return m.h.post(m.h.leave(grp, member), done)
}

// Release is [Hub.Release].
func (m Manual) Release(grp, member string, partition int, epoch int64, coolDown time.Duration, done func(error)) error {
	return m.h.post(m.h.release(grp, member, "", partition, epoch, coolDown), done)
}

// Checkpoint is [Hub.Checkpoint].
func (m Manual) Checkpoint(grp string, cs []group.Checkpoint, done func([]error, error)) error {
	errs := make([]error, len(cs))
	return m.h.post(m.h.checkpoint(grp, cs, errs), func(err error) { done(errs, err) })
}

// Rewind is [Hub.Rewind] to behind an event.
func (m Manual) Rewind(grp string, partition int, to stream.SeqNo, done func(error)) error {
	return m.h.post(m.h.rewind(grp, []int{partition}, []stream.SeqNo{to}), done)
}

// MoveAway is [Hub.MoveAway].
func (m Manual) MoveAway(grp string, partition int, coolDown time.Duration, done func(error)) error {
	return m.h.post(m.h.moveAway(grp, partition, coolDown), done)
}

// Pause is [Hub.Pause].
func (m Manual) Pause(grp string, partitions []int, until time.Time, done func(error)) error {
	return m.h.post(m.h.pause(grp, partitions, until), done)
}

// Claim is [Hub.Claim].
func (m Manual) Claim(grp string, cs []group.Ownership, done func([]group.Ownership, error)) error {
	var won []group.Ownership
	return m.h.post(m.h.claim(grp, cs, &won), func(err error) { done(won, err) })
}
