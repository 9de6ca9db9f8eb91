// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Deferred says how deferred messages are taken.
type Deferred struct {
	Mode Mode
	// Session is the lock that the caller has on the session they are in; zero is
	// none.
	Session queue.SessionLock
	// MaxBytes is how large the messages may be together, unless it is a single one;
	// zero is no limit. The others stay deferred.
	MaxBytes int
}

// ReceiveDeferred takes deferred messages by their numbers, all of them or none. A
// number that is given twice counts once. One that has expired is not found, and
// dropped or dead-lettered now that it is asked for. What the caller cannot pass on it gives
// back with Return.
func (b *Broker) ReceiveDeferred(ctx context.Context, addr string, seqs []queue.SeqNo, o Deferred) ([]Delivery, error) {
	n, part, err := b.Readable(addr)
	if err != nil {
		return nil, err
	}
	distinct := make([]queue.SeqNo, 0, len(seqs))
	known := make(map[queue.SeqNo]bool, len(seqs))
	for _, seq := range seqs {
		if !known[seq] {
			known[seq] = true
			distinct = append(distinct, seq)
		}
	}
	ds, err := queueserver.Do(ctx, n.Shard, queueserver.LockDeferred{Queue: n.QueueID(part), Seqs: distinct, Session: o.Session})
	switch {
	case err != nil:
		Return(ds) // it may have been run, though nobody waited
		return nil, catalog.Translate(err)
	case o.Mode == PeekLock:
		return o.fit(ds), nil
	}
	ds, err = o.load(ds)
	if err != nil || len(ds) == 0 {
		return nil, err
	}
	return takeForGood(ctx, ds)
}

// fit returns as many of the messages as may be taken. The others go back.
func (o *Deferred) fit(ds []Delivery) []Delivery {
	size := 0
	for i := range ds {
		size += int(ds[i].Body.Size)
		if i > 0 && o.MaxBytes > 0 && size > o.MaxBytes {
			Return(ds[i:])
			return ds[:i]
		}
	}
	return ds
}

// load reads as many of the messages as may be taken for good. The others go back.
func (o *Deferred) load(ds []Delivery) ([]Delivery, error) {
	var loaded []Delivery
	size := 0
	for i := range ds {
		m, err := ds[i].Message()
		if errors.Is(err, ErrMessageNotFound) {
			continue // it cannot be read, and has become a dead letter
		}
		if err != nil {
			Return(append(loaded, ds[i:]...))
			return nil, err
		}
		if len(loaded) > 0 && o.MaxBytes > 0 && size+m.Size() > o.MaxBytes {
			Return(ds[i:])
			break
		}
		size += m.Size()
		loaded = append(loaded, ds[i])
	}
	return loaded, nil
}

// takeForGood removes messages that are locked and loaded. If ctx ends first, they
// are given back.
func takeForGood(ctx context.Context, ds []Delivery) ([]Delivery, error) {
	var decided atomic.Bool // by whoever is first: the answer, or the end of ctx
	answer := make(chan []Delivery, 1)
	err := queueserver.TakeForGood(ds, queue.Deferred, func(taken []Delivery, err error) {
		if decided.CompareAndSwap(false, true) {
			answer <- taken
		} else {
			Return(taken)
		}
	})
	if err != nil {
		return nil, err
	}
	select {
	case taken := <-answer:
		return taken, nil
	case <-ctx.Done():
	}
	if !decided.CompareAndSwap(false, true) {
		return <-answer, nil
	}
	return nil, context.Cause(ctx)
}

// Return gives deliveries back that reached nobody: nothing counts against the
// messages, and those that were taken for good are in their place again. Each may
// be given back once. It never blocks.
func Return(ds []Delivery) {
	// A shard that has stopped keeps no locks; what it has removed stays removed.
	_ = queueserver.Return(ds)
}

// ReturnFailed gives deliveries back that the receiver can never take, which counts
// as a failed delivery. It never blocks.
func ReturnFailed(ds []Delivery) { _ = queueserver.ReturnFailed(ds) }
