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

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/shard"
)

// Settle decides about messages by token alone, whoever received them. Where there are
// sessions it takes the lock of the session too, one of held: a token can be guessed.
func (b *Broker) Settle(ctx context.Context, addr string, tokens []queue.Token, o Outcome, held ...queue.SessionLock) error {
	n, part, err := b.readable(addr)
	if err != nil {
		return err
	}
	if n.inSessions(part) {
		err := n.shard.Call(ctx, func(tx *shard.Tx) error {
			q, err := tx.Inspect(n.id, part)
			if err != nil {
				return err
			}
			return fenced(q, tx.Now(), tokens, held)
		})
		if err != nil {
			return err
		}
	}
	answer := make(chan error, 1)
	settle(n, part, tokens, o, func(errs []error) { answer <- first(errs) })
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// first returns the first of the errors of a settlement, and how many there are
// besides: there may be thousands, and they say the same.
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

// inSessions reports whether every message of the part belongs to a session.
func (n *node) inSessions(part shard.Part) bool {
	return part == shard.Main && n.def.Load().queue.RequiresSession
}

// fenced reports that messages are in sessions of which held has no lock that is still
// good. Messages that are gone are left to who looks for them next.
func fenced(q *queue.Queue, now time.Time, tokens []queue.Token, held []queue.SessionLock) error {
	mine := make(map[string]bool, len(held))
	for _, l := range held {
		mine[l.ID] = mine[l.ID] || q.HoldsSession(now, l)
	}
	for _, t := range tokens {
		if d, ok := q.Lookup(t.Seq); ok && !mine[d.Session] {
			return ErrSessionLockLost
		}
	}
	return nil
}

// Renew extends message locks and returns until when each holds. For held see Settle.
func (b *Broker) Renew(ctx context.Context, addr string, tokens []queue.Token, held ...queue.SessionLock) ([]time.Time, error) {
	n, part, err := b.readable(addr)
	if err != nil {
		return nil, err
	}
	until := make([]time.Time, len(tokens))
	err = b.apply(ctx, addr, func(tx *shard.Tx, q *queue.Queue, _ *queue.Effects) error {
		if part == shard.Main {
			n.watch.count(tx.Now(), objective.Renew, len(tokens))
		}
		if n.inSessions(part) {
			if err := fenced(q, tx.Now(), tokens, held); err != nil {
				return err
			}
		}
		for i, t := range tokens {
			at, err := q.Renew(tx.Now(), t)
			if err != nil {
				return err
			}
			until[i] = at
		}
		return nil
	})
	return until, err
}

// Peek shows messages in the order of their numbers, from the first that is not
// below from, whatever their state.
func (b *Broker) Peek(ctx context.Context, addr string, from queue.SeqNo, max int, session *string) ([]Delivery, error) {
	n, sub, err := b.find(addr) // a topic can be peeked: at what it holds back
	if err != nil {
		return nil, err
	}
	n.touch(b.clock.Now())
	part := shard.Part(sub)
	var ds []Delivery
	p := queue.Peek{From: from, Session: session}
	begun := false
	err = n.shard.CallInSteps(ctx, func(tx *shard.Tx) (bool, error) {
		q, err := tx.Inspect(n.id, part)
		if err != nil {
			return false, err
		}
		if part == shard.Main && n.watch != nil && !begun {
			n.watch.count(tx.Now(), objective.Peek, 1)
		}
		begun = true
		p.Max, p.Visits = max-len(ds), tx.Visits()
		found, next := q.Peek(tx.Now(), p)
		for _, qd := range found {
			d, err := tx.Delivery(n.id, part, qd)
			if err != nil {
				return false, err
			}
			ds = append(ds, d)
		}
		p.From = next
		return next == 0 || len(ds) >= max, nil
	})
	return ds, err
}

// RenewSession extends a session lock that one of the receivers holds; see
// Receiver.SessionLock. Who has lost it does not speak for the session any more,
// whoever has it now: ErrSessionLockLost.
func (b *Broker) RenewSession(ctx context.Context, addr string, lock queue.SessionLock) (time.Time, error) {
	var until time.Time
	err := b.apply(ctx, addr, func(tx *shard.Tx, q *queue.Queue, _ *queue.Effects) (err error) {
		until, err = q.RenewSession(tx.Now(), lock)
		return err
	})
	return until, err
}

// SessionState returns the state that was set for the session of a lock, nil if none
// was; ErrSessionLockLost.
func (b *Broker) SessionState(ctx context.Context, addr string, lock queue.SessionLock) ([]byte, error) {
	n, part, err := b.readable(addr)
	if err != nil {
		return nil, err
	}
	for {
		var ref queue.Ref
		var ok bool
		err := n.shard.Call(ctx, func(tx *shard.Tx) error {
			q, err := tx.Inspect(n.id, part)
			if err != nil {
				return err
			}
			if !q.HoldsSession(tx.Now(), lock) {
				return ErrSessionLockLost
			}
			ref, ok = q.SessionState(lock.ID)
			return nil
		})
		if err != nil || !ok {
			return nil, err
		}
		m, err := n.shard.Read(ctx, ref)
		if errors.Is(err, journal.ErrFreed) && ctx.Err() == nil {
			continue // it was moved, or set anew
		}
		if err != nil {
			return nil, err
		}
		state := []byte{}
		for data := range m.Data() {
			state = append(state, data...)
		}
		return state, nil
	}
}

// SetSessionState sets the state of the session of a lock; nil clears it.
// ErrSessionLockLost if the lock does not hold any more.
func (b *Broker) SetSessionState(ctx context.Context, addr string, lock queue.SessionLock, state []byte) error {
	if err := checkName("session id", lock.ID); err != nil {
		return err
	}
	n, _, err := b.readable(addr)
	if err != nil {
		return err
	}
	if err := limits.CheckBytes("session state", len(state), int(n.def.Load().maxMessage())); err != nil {
		return invalid(err)
	}
	return b.apply(ctx, addr, func(tx *shard.Tx, q *queue.Queue, out *queue.Effects) error {
		if !q.HoldsSession(tx.Now(), lock) {
			return ErrSessionLockLost
		}
		var ref queue.Ref
		if state != nil {
			if !q.StateFits(lock.ID, len(state)) {
				return ErrQuota
			}
			var err error
			draft := message.Draft{Body: state}
			if ref, err = tx.Store(draft.Encode(nil)); err != nil {
				return err
			}
		}
		q.SetSessionState(tx.Now(), lock.ID, ref, out)
		return nil
	})
}

// Sessions lists the sessions that have messages or a state, or with since those
// whose state changed after it.
func (b *Broker) Sessions(ctx context.Context, addr string, since time.Time, skip, top int) ([]string, error) {
	var ids []string
	from := 0
	err := b.applyInSteps(ctx, addr, func(tx *shard.Tx, q *queue.Queue, _ *queue.Effects) (bool, error) {
		var found []string
		found, from = q.Sessions(since, from, tx.Visits())
		ids = append(ids, found...)
		return from == 0, nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(ids)
	ids = slices.Compact(ids) // one that ended and began anew while they were listed
	ids = ids[min(max(skip, 0), len(ids)):]
	return slices.Clip(ids[:min(max(top, 0), len(ids))]), nil
}

// DeleteMessages removes up to max unlocked messages that were enqueued before a
// time, oldest first, and returns how many. Those that come while it is at work stay.
// An error does not undo what was removed before.
func (b *Broker) DeleteMessages(ctx context.Context, addr string, before time.Time, max int) (int, error) {
	p := queue.Purge{Before: before, Max: max}
	err := b.applyInSteps(ctx, addr, func(tx *shard.Tx, q *queue.Queue, out *queue.Effects) (bool, error) {
		return q.Purge(tx.Now(), &p, tx.Visits(), out), nil
	})
	return p.Gone, err
}

// Purge removes all unlocked messages and returns how many.
func (b *Broker) Purge(ctx context.Context, addr string) (int, error) {
	return b.DeleteMessages(ctx, addr, time.Time{}, 0)
}

// Remove removes single messages that are not locked.
func (b *Broker) Remove(ctx context.Context, addr string, seqs []queue.SeqNo) error {
	return b.apply(ctx, addr, func(tx *shard.Tx, q *queue.Queue, out *queue.Effects) error {
		var errs []error
		for _, seq := range seqs {
			errs = append(errs, q.Remove(tx.Now(), seq, out))
		}
		return errors.Join(errs...)
	})
}

// RemoveUnlocked removes those of the messages that are there and not locked, and
// returns how many.
func (b *Broker) RemoveUnlocked(ctx context.Context, addr string, seqs []queue.SeqNo) (int, error) {
	if len(seqs) == 0 {
		return 0, nil
	}
	var n int
	err := b.apply(ctx, addr, func(tx *shard.Tx, q *queue.Queue, out *queue.Effects) error {
		for _, seq := range seqs {
			if q.Remove(tx.Now(), seq, out) == nil {
				n++
			}
		}
		return nil
	})
	return n, err
}

// apply runs fn on the queue that an address names, on its shard, and returns
// when what it did is durable.
func (b *Broker) apply(ctx context.Context, addr string, fn func(*shard.Tx, *queue.Queue, *queue.Effects) error) error {
	n, part, err := b.readable(addr)
	if err != nil {
		return err
	}
	return translate(n.shard.Call(ctx, func(tx *shard.Tx) error {
		return tx.Apply(n.id, part, func(q *queue.Queue, out *queue.Effects) error { return fn(tx, q, out) })
	}))
}

// applyInSteps is apply for what is about many messages: fn is called again and again,
// with the operations of others in between, until it is done.
func (b *Broker) applyInSteps(ctx context.Context, addr string, fn func(*shard.Tx, *queue.Queue, *queue.Effects) (bool, error)) error {
	n, part, err := b.readable(addr)
	if err != nil {
		return err
	}
	n.touch(time.Now())
	return translate(n.shard.CallInSteps(ctx, func(tx *shard.Tx) (done bool, err error) {
		err = tx.Apply(n.id, part, func(q *queue.Queue, out *queue.Effects) (err error) {
			done, err = fn(tx, q, out)
			return err
		})
		return done, err
	}))
}

// Runtime tells what an entity is like at the moment.
func (b *Broker) Runtime(ctx context.Context, addr string) (Runtime, error) {
	n, _, err := b.find(addr)
	if err != nil {
		return Runtime{}, err
	}
	def := n.def.Load()
	rt := Runtime{CreatedAt: def.Created, UpdatedAt: def.Updated, UnknownPriorities: def.worth.unknown.Load()}
	if at := n.accessed.Load(); at != 0 {
		rt.AccessedAt = time.UnixMilli(at).UTC()
	} else if n.kind == KindSubscription {
		rt.AccessedAt = def.Created // as the service tells it; queues and topics have none yet
	}
	if n.kind == KindTopic {
		rt.Subscriptions = len(b.subscriptions(n))
	}
	var survey queue.Survey
	err = n.shard.CallInSteps(ctx, func(tx *shard.Tx) (bool, error) {
		q, err := tx.Inspect(n.id, shard.Main)
		if err != nil || !q.Survey(&survey, tx.Visits()) {
			return false, err
		}
		for part := shard.Main; part <= shard.TransferDeadLetter; part++ {
			q, err := tx.Inspect(n.id, part)
			if err != nil {
				return false, err
			}
			rt.add(part, q.Counts())
			rt.Receivers += tx.Receivers(n.id, part)
		}
		return true, nil
	})
	for _, level := range slices.Backward(slices.Sorted(maps.Keys(survey.Levels))) {
		st := survey.Levels[level]
		rt.Levels = append(rt.Levels, LevelCount{Level: level, Ready: st.Ready, Oldest: st.Oldest})
	}
	return rt, err
}

func (rt *Runtime) add(part shard.Part, c queue.Counts) {
	rt.Bytes += c.Bytes
	switch part {
	case shard.Main:
		rt.Active = c.Ready + c.Locked
		rt.Locked, rt.Deferred, rt.Scheduled = c.Locked, c.Deferred, c.Scheduled
	case shard.DeadLetter:
		rt.Dead = c.Total()
	case shard.TransferDeadLetter:
		rt.TransferDead = c.Total()
	}
}
