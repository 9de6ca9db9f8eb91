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

// Deferred says how deferred messages are received.
type Deferred struct {
	Mode Mode
	// Session is the caller's lock of the session that they are in; zero is none.
	Session queue.SessionLock
	// MaxBytes is the limit of the sizes of the messages together, unless it is a single
	// one; zero is no limit. The others stay deferred.
	MaxBytes int
}

// ReceiveDeferred takes deferred messages by their sequence numbers, all of them or none.
// A number that is given twice counts once. An expired one is not found, and is removed
// or dead-lettered now. Deliveries that the caller cannot pass on it returns with Return.
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
		Return(ds) // it may have run after ctx ended
		return nil, catalog.Translate(err)
	case o.Mode == PeekLock:
		return o.fit(ds), nil
	}
	ds, err = o.load(ds)
	if err != nil || len(ds) == 0 {
		return nil, err
	}
	return removeLoaded(ctx, ds)
}

// fit returns as many of the messages as MaxBytes allows. The others are released.
func (o *Deferred) fit(ds []Delivery) []Delivery {
	size := 0
	for i := range ds {
		size += int(ds[i].Size())
		if i > 0 && o.MaxBytes > 0 && size > o.MaxBytes {
			Return(ds[i:])
			return ds[:i]
		}
	}
	return ds
}

// load reads as many of the messages as MaxBytes allows. The others are released.
func (o *Deferred) load(ds []Delivery) ([]Delivery, error) {
	var loaded []Delivery
	size := 0
	for i := range ds {
		m, err := ds[i].Message()
		if errors.Is(err, ErrMessageNotFound) {
			continue // unreadable: it has become a dead letter
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

// removeLoaded removes messages that are locked and loaded. If ctx ends first, they are
// returned.
func removeLoaded(ctx context.Context, ds []Delivery) ([]Delivery, error) {
	var decided atomic.Bool // set by the first of the two: the answer, or the end of ctx
	answer := make(chan []Delivery, 1)
	err := queueserver.RemoveLocked(ds, queue.Deferred, func(taken []Delivery, err error) {
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

// Return returns deliveries that reached no receiver: delivery counts are unchanged, and
// messages that were received and deleted are stored again in their old position. Each
// may be returned once. It never blocks.
func Return(ds []Delivery) {
	// A shard that has stopped has no locks; what it has removed stays removed.
	_ = queueserver.Return(ds)
}

// ReturnFailed returns deliveries that the receiver can never accept, which counts as a
// failed delivery. It never blocks.
func ReturnFailed(ds []Delivery) { _ = queueserver.ReturnFailed(ds) }
