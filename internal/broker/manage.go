// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Settle settles messages by token alone, on behalf of any receiver. In a session queue it
// needs the lock of the session too, one of held: a token can be guessed.
func (b *Broker) Settle(ctx context.Context, addr string, tokens []queue.Token, o Outcome, held ...queue.SessionLock) error {
	return b.SettleThen(ctx, addr, tokens, o, func() {}, held...)
}

// SettleThen is Settle for a caller that has to know when the settlement is done or refused: then
// it calls over, once, which may be after it has returned because ctx ended. Until then the
// shard keeps the tokens and the outcome.
func (b *Broker) SettleThen(ctx context.Context, addr string, tokens []queue.Token, o Outcome, over func(), held ...queue.SessionLock) error {
	n, part, err := b.Readable(addr)
	if err == nil && n.InSessions(part) {
		_, err = queueserver.Do(ctx, n.Shard, queueserver.CheckSessionLocks{Queue: n.QueueID(part), Tokens: tokens, Sessions: held})
	}
	if err != nil {
		over()
		return err
	}
	answer := make(chan error, 1)
	n.Settle(part, tokens, o, func(errs []error) {
		over()
		answer <- first(errs)
	})
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// first returns the first of the errors of a settlement, and how many others there are:
// there may be thousands with the same text.
func first(errs []error) error {
	var err error
	n := 0
	for _, e := range errs {
		if e != nil {
			err = cmp.Or(err, e)
			n++
		}
	}
	if n > 1 {
		return fmt.Errorf("%w (and %d more)", err, n-1)
	}
	return err
}

// Renew extends message locks and returns when each ends. For held see Settle.
func (b *Broker) Renew(ctx context.Context, addr string, tokens []queue.Token, held ...queue.SessionLock) ([]time.Time, error) {
	n, part, err := b.Readable(addr)
	if err != nil {
		return nil, err
	}
	until, err := queueserver.Do(ctx, n.Shard, queueserver.Renew{Queue: n.QueueID(part), Tokens: tokens, Sessions: held})
	return until, catalog.Translate(err)
}

// RenewDurably is Renew with locks that survive a restart of the broker.
func (b *Broker) RenewDurably(ctx context.Context, addr string, tokens []queue.Token, held ...queue.SessionLock) ([]time.Time, error) {
	n, part, err := b.Readable(addr)
	if err != nil {
		return nil, err
	}
	until, err := queueserver.Do(ctx, n.Shard, queueserver.Renew{Queue: n.QueueID(part), Tokens: tokens, Sessions: held, Durable: true})
	return until, catalog.Translate(err)
}

// SaveState keeps a state beside a locked message, which is delivered as its property
// triagemq-state, renews the lock durably and returns when that ends. For held see Settle.
func (b *Broker) SaveState(ctx context.Context, addr string, t queue.Token, state []byte, held ...queue.SessionLock) (time.Time, error) {
	n, part, err := b.Readable(addr)
	if err != nil {
		return time.Time{}, err
	}
	if err := limits.CheckBytes("the state of a message", len(state), limits.SavedState); err != nil {
		return time.Time{}, catalog.Invalid(err)
	}
	until, err := queueserver.Do(ctx, n.Shard, queueserver.Save{Queue: n.QueueID(part), Token: t, State: state, Sessions: held})
	return until, catalog.Translate(err)
}

// Peek returns messages in any state in sequence order, from the first that is not below
// from.
func (b *Broker) Peek(ctx context.Context, addr string, from queue.SeqNo, max int, session *string) ([]Delivery, error) {
	n, sub, err := b.Find(addr) // a topic can be peeked: at its stored messages
	if err != nil {
		return nil, err
	}
	n.Touch(b.clock.Now())
	found, err := queueserver.Do(ctx, n.Shard, queueserver.Peek{Queue: n.QueueID(queueserver.SubQueue(sub)), From: from, Max: max, Session: session})
	return found.Messages, err
}

// RenewSession extends a session lock that one of the receivers has; see
// Receiver.SessionLock. ErrSessionLockLost if the lock is lost, even if another receiver
// of the same client has the session now.
func (b *Broker) RenewSession(ctx context.Context, addr string, lock queue.SessionLock) (time.Time, error) {
	n, part, err := b.Readable(addr)
	if err != nil {
		return time.Time{}, err
	}
	until, err := queueserver.Do(ctx, n.Shard, queueserver.RenewSession{Queue: n.QueueID(part), Lock: lock})
	return until, catalog.Translate(err)
}

// SessionState returns the state that was set for the session of a lock, nil if none
// was; ErrSessionLockLost.
func (b *Broker) SessionState(ctx context.Context, addr string, lock queue.SessionLock) ([]byte, error) {
	n, part, err := b.Readable(addr)
	if err != nil {
		return nil, err
	}
	return n.Shard.SessionState(ctx, n.QueueID(part), lock)
}

// SetSessionState sets the state of the session of a lock; nil clears it.
// ErrSessionLockLost if the lock is not valid any more.
func (b *Broker) SetSessionState(ctx context.Context, addr string, lock queue.SessionLock, state []byte) error {
	if err := catalog.CheckName("session id", lock.ID); err != nil {
		return err
	}
	n, part, err := b.Readable(addr)
	if err != nil {
		return err
	}
	if err := limits.CheckBytes("session state", len(state), int(n.Definition().MaxMessage())); err != nil {
		return catalog.Invalid(err)
	}
	_, err = queueserver.Do(ctx, n.Shard, queueserver.SetSessionState{Queue: n.QueueID(part), Lock: lock, State: state, Clear: state == nil})
	return catalog.Translate(err)
}

// Sessions lists the sessions that have messages or a state, or with since those
// whose state changed after it.
func (b *Broker) Sessions(ctx context.Context, addr string, since time.Time, skip, top int) ([]string, error) {
	n, part, err := b.Readable(addr)
	if err != nil {
		return nil, err
	}
	leave, err := b.listing.Take(ctx, entity.Owner(n.Path)) // a queue may have millions of them
	if err != nil {
		return nil, err
	}
	defer leave()
	ids, err := queueserver.Do(ctx, n.Shard, queueserver.ListSessions{Queue: n.QueueID(part), Since: since})
	if err != nil {
		return nil, catalog.Translate(err)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids) // a session that ended and began again meanwhile
	ids = ids[min(max(skip, 0), len(ids)):]
	return slices.Clone(ids[:min(max(top, 0), len(ids))]), nil
}

// DeleteMessages removes up to max unlocked messages that were enqueued before a time,
// oldest first, and returns how many. Messages that arrive meanwhile stay. An error does
// not undo what was removed before.
func (b *Broker) DeleteMessages(ctx context.Context, addr string, before time.Time, max int) (int, error) {
	n, part, err := b.Readable(addr)
	if err != nil {
		return 0, err
	}
	removed, err := queueserver.Do(ctx, n.Shard, queueserver.Purge{Queue: n.QueueID(part), Before: before, Max: max})
	return removed, catalog.Translate(err)
}

// Purge removes all unlocked messages and returns how many.
func (b *Broker) Purge(ctx context.Context, addr string) (int, error) {
	return b.DeleteMessages(ctx, addr, time.Time{}, 0)
}

// Remove removes single messages that are not locked.
func (b *Broker) Remove(ctx context.Context, addr string, seqs []queue.SeqNo) error {
	errs, err := b.removeMessages(ctx, addr, seqs)
	return cmp.Or(err, catalog.Translate(errors.Join(errs...)))
}

// RemoveUnlocked removes those of the messages that exist and are not locked, and returns
// how many.
func (b *Broker) RemoveUnlocked(ctx context.Context, addr string, seqs []queue.SeqNo) (int, error) {
	if len(seqs) == 0 {
		return 0, nil
	}
	errs, err := b.removeMessages(ctx, addr, seqs)
	if err != nil {
		return 0, err
	}
	n := len(seqs)
	for _, err := range errs {
		if err != nil {
			n--
		}
	}
	return n, nil
}

// removeMessages removes single messages; errs is nil if all are removed now, else it has
// an error or nil for each.
func (b *Broker) removeMessages(ctx context.Context, addr string, seqs []queue.SeqNo) (errs []error, err error) {
	n, part, err := b.Readable(addr)
	if err != nil {
		return nil, err
	}
	errs, err = queueserver.Do(ctx, n.Shard, queueserver.Remove{Queue: n.QueueID(part), Seqs: seqs})
	return errs, catalog.Translate(err)
}

// Runtime returns the counts and times of an entity.
func (b *Broker) Runtime(ctx context.Context, addr string) (Runtime, error) {
	n, _, err := b.Find(addr)
	if err != nil {
		return Runtime{}, err
	}
	def := n.Definition()
	rt := Runtime{CreatedAt: def.Created, UpdatedAt: def.Updated, UnknownPriorities: def.Classifier.Unknown.Load()}
	if rt.AccessedAt = n.Accessed(); rt.AccessedAt.IsZero() && n.Kind == KindSubscription {
		rt.AccessedAt = def.Created // as Service Bus does; queues and topics have none yet
	}
	if n.Kind == KindTopic {
		rt.Subscriptions = len(b.SubscriptionsOf(n))
	}
	found, err := queueserver.Do(ctx, n.Shard, queueserver.Inspect{ID: n.ID})
	rt.Receivers = found.Receivers
	for part, c := range found.Counts {
		rt.add(part, c)
	}
	for _, level := range slices.Backward(slices.Sorted(maps.Keys(found.Levels))) {
		st := found.Levels[level]
		rt.Levels = append(rt.Levels, LevelCount{Level: level, Ready: st.Ready, Oldest: st.Oldest})
	}
	return rt, err
}

func (rt *Runtime) add(part queueserver.SubQueue, c queue.Counts) {
	rt.Bytes += c.Bytes
	switch part {
	case queueserver.Main:
		rt.Active = c.Ready + c.Locked + c.Retrying
		rt.Locked, rt.Retrying, rt.Deferred, rt.Scheduled = c.Locked, c.Retrying, c.Deferred, c.Scheduled
	case queueserver.DeadLetter:
		rt.Dead = c.Total()
	case queueserver.TransferDeadLetter:
		rt.TransferDead = c.Total()
	}
}
