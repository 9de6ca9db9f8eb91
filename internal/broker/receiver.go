// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Receiver receives messages from one queue or subscription, or from one of its sessions.
type Receiver struct {
	n     *catalog.Entity
	part  queueserver.SubQueue
	id    queueserver.ConsumerID
	lock  queue.SessionLock // of the session it was granted
	until time.Time         // of the session lock when it was granted
	take  queue.TakeOptions

	mu sync.Mutex
	// limit was posted last, and no drain since; nil if one was. Guarded by mu.
	limit *queueserver.DeliveryLimit
}

// OpenReceiver attaches a receiver; it gets no message before SetDeliveryLimit. With
// NextSession it waits for a session until ctx ends, which is ErrTimeout.
func (b *Broker) OpenReceiver(ctx context.Context, addr string, o ReceiverOptions) (*Receiver, error) {
	n, part, err := b.Readable(addr)
	if err != nil {
		return nil, err
	}
	def := n.Definition()
	inSession := o.Session != nil || o.NextSession
	switch {
	case !def.Properties.Status.CanReceive():
		return nil, fmt.Errorf("%w: receiving from %q is disabled", ErrDisabled, n.Path)
	case part == queueserver.Main && def.Properties.ForwardTo != "":
		return nil, fmt.Errorf("%w: %q forwards its messages to %q", ErrNotAllowed, n.Path, def.Properties.ForwardTo)
	case part == queueserver.Main && def.Properties.RequiresSession && !inSession:
		return nil, fmt.Errorf("%w: It is not possible for an entity that requires sessions to create a non-sessionful message receiver", ErrNotAllowed)
	case inSession && (part != queueserver.Main || !def.Properties.RequiresSession):
		return nil, fmt.Errorf("%w: It is not possible for an entity that does not require sessions to create a sessionful message receiver", ErrNotAllowed)
	}
	if o.Session != nil {
		if err := catalog.CheckName("session id", *o.Session); err != nil {
			return nil, err
		}
	}
	want, err := o.take(def.Classifier.Policy)
	if err != nil {
		return nil, err
	}
	r := &Receiver{n: n, part: part, take: want}
	r.id = n.Shard.AddSink(o.Sink)
	a := queueserver.Attachment{Consumer: r.id, ID: n.ID, SubQueue: part, Take: want, Recall: o.Recall, Probing: o.probing}
	if inSession {
		return r, r.acceptSession(ctx, a, o)
	}
	return r, r.attach(a)
}

func (r *Receiver) attach(a queueserver.Attachment) error {
	answer := make(chan error, 1)
	if err := r.n.Shard.Attach(a, func(err error) { answer <- err }); err != nil {
		return err
	}
	return <-answer
}

// acceptSession waits for a session. If ctx ends first, the wait is canceled; the shard
// then answers in any case, and a session that was granted just before is kept.
func (r *Receiver) acceptSession(ctx context.Context, a queueserver.Attachment, o ReceiverOptions) error {
	answer := make(chan error, 1)
	err := r.n.Shard.AcceptSession(a, o.Session, func(lock queue.SessionLock, until time.Time, err error) {
		r.lock, r.until = lock, until
		answer <- err
	})
	if err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		_ = r.n.Shard.CancelAccept(r.id) // a shard that has stopped has answered
	}
	if err := <-answer; errors.Is(err, queueserver.ErrAcceptCanceled) {
		return fmt.Errorf("%w: no session of %q became free", ErrTimeout, r.n.Path)
	} else if err != nil {
		return err
	}
	return nil
}

// Session returns the session of the receiver, and the end of its lock when it was
// granted.
func (r *Receiver) Session() (id string, until time.Time) { return r.lock.ID, r.until }

// ID is that of the entity; see catalog.Address.
func (r *Receiver) ID() uint64 { return uint64(r.n.ID) }

// SessionLock is the lock of the session it was granted; zero without one.
func (r *Receiver) SessionLock() queue.SessionLock { return r.lock }

// SetDeliveryLimit allows the sink messages up to the total-th since the receiver was
// opened. It counts every delivery to the sink, so a caller that has seen n of them and
// has credit for c more sets n+c, whatever is still on its way.
//
// However often it is called, one limit at most is on its way to the shard between two
// drains.
func (r *Receiver) SetDeliveryLimit(total uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit != nil && r.limit.Change(total) {
		return
	}
	// A shard that has stopped has notified the sink.
	r.limit, _ = r.n.Shard.PostDeliveryLimit(r.id, total)
}

// Drain delivers what is ready, up to the delivery limit, and then calls Drained; the
// unused rest of the limit is canceled.
func (r *Receiver) Drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = nil // the next one comes behind the drain, and is not voided by it
	_ = r.n.Shard.Drain(r.id)
}

// Settle settles messages of the receiver's queue. It never blocks and does not retain
// tokens; done gets nil if every token was valid, else an error or nil for each. Without a
// done the settlement has no acknowledgement and may be delayed.
func (r *Receiver) Settle(tokens []queue.Token, o Outcome, done func(errs []error)) {
	r.n.SettleAs(r.id, r.part, tokens, o, done)
}

// DeclineRecall answers a Recall of the sink: these messages have been started and are not
// released.
func (r *Receiver) DeclineRecall(tokens []queue.Token) {
	_ = r.n.Shard.DeclineRecall(r.id, tokens)
}

// Recycle takes back a slice of deliveries that the sink does not use any more; it may,
// and need not, be called for each.
func (r *Receiver) Recycle(ds []Delivery) { r.n.Shard.Recycle(ds) }

// Close ends the receiver. Its message locks stay, a session is released.
func (r *Receiver) Close() {
	r.n.Touch(r.n.Shard.Clock().Now()) // it was in use until now
	_ = r.n.Shard.Detach(r.id)
}
