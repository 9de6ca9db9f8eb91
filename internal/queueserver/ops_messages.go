// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/bodies"
)

// Peek shows up to Max messages in all states, by number, from From on.
type Peek struct {
	Queue   QueueID
	From    queue.SeqNo
	Max     int
	Session *string // only of this session; nil is any
	// Chunk ends it after one step, however little that has found.
	Chunk bool
}

// Peeked answers Peek.
type Peeked struct {
	Messages []Delivery
	Next     queue.SeqNo // where to go on; zero if there are no more
	Last     queue.SeqNo // highest number assigned when it began
}

func (o Peek) begin(_ *Shard, r *Peeked) work {
	p := queue.Peek{From: o.From, Session: o.Session}
	begun := false
	return func(s *Shard) (bool, error) {
		hq, err := s.use(o.Queue)
		if err != nil {
			return false, err
		}
		if !begun {
			begun, r.Last = true, hq.q.Last()
			if !o.Chunk {
				hq.count(s.tx.Now(), objective.Peek, 1)
			}
		}
		p.Max, p.Visits = o.Max-len(r.Messages), s.opts.VisitStep
		found, next := hq.q.Peek(s.tx.Now(), p)
		for _, qd := range found {
			r.Messages = append(r.Messages, s.delivery(hq, qd))
		}
		p.From, r.Next = next, next
		return o.Chunk || next == 0 || len(r.Messages) >= o.Max, nil
	}
}

// NextLevel replies with the level of the message that a receiver would get next.
type NextLevel struct {
	Queue QueueID
	Take  queue.TakeOptions
}

// NextLevelReply answers NextLevel.
type NextLevelReply struct {
	Level queue.Level
	Found bool
}

func (o NextLevel) begin(_ *Shard, r *NextLevelReply) work {
	return once(func(s *Shard) error {
		q, err := s.inspect(o.Queue)
		if err != nil {
			return err
		}
		d, ok := q.PeekNext(s.tx.Now(), o.Take)
		*r = NextLevelReply{Level: d.Level, Found: ok}
		return nil
	})
}

// LastNumber replies with the highest number that a queue has assigned.
type LastNumber struct{ Queue QueueID }

func (o LastNumber) begin(_ *Shard, r *queue.SeqNo) work {
	return once(func(s *Shard) error {
		q, err := s.inspect(o.Queue)
		if err == nil {
			*r = q.Last()
		}
		return err
	})
}

// Renew extends locks, all of them or none, and replies until when each is valid.
type Renew struct {
	Queue  QueueID
	Tokens []queue.Token
	// Sessions are the locks that the caller has on sessions. In a queue of sessions
	// each message must be in one of them.
	Sessions []queue.SessionLock
	// Durable asks for locks that survive a restart. They are not while the disk has no
	// space for that.
	Durable bool
}

func (o Renew) begin(_ *Shard, r *[]time.Time) work {
	return onceOf(len(o.Tokens), func(s *Shard) error {
		hq, err := s.use(o.Queue)
		if err != nil {
			return err
		}
		hq.count(s.tx.Now(), objective.Renew, len(o.Tokens))
		if err := checkSessionLocks(hq.q, s.tx.Now(), o.Tokens, o.Sessions); err != nil {
			return err
		}
		for _, t := range o.Tokens {
			if !hq.q.LockValid(s.tx.Now(), t) {
				_, err := hq.q.Renew(s.tx.Now(), t) // says what was lost
				return err
			}
		}
		until := make([]time.Time, len(o.Tokens))
		for i, t := range o.Tokens {
			if until[i], err = s.renew(hq, t, o.Durable); err != nil {
				return err
			}
		}
		*r = until
		s.collectEffects(hq)
		s.touch(hq) // its deadline is another one now
		return nil
	})
}

// perRenewal is what a durable renewal writes.
const perRenewal = 64

// renew extends a lock. One that is durable stays so, if there is space to log that.
func (s *Shard) renew(hq *hostedQueue, t queue.Token, durable bool) (time.Time, error) {
	now := s.tx.Now()
	if (durable || hq.q.LockDurable(now, t)) && s.tx.HasSpace(perRenewal) {
		return hq.q.RenewDurably(now, t, s.out(hq))
	}
	return hq.q.Renew(now, t)
}

// Save keeps a state beside a locked message, in place of the one that it has, and extends
// the lock durably. It replies until when that is valid; queue.ErrLockLost, queue.ErrFull,
// ErrDiskFull.
type Save struct {
	Queue QueueID
	Token queue.Token
	State []byte
	// Sessions are as in Renew.
	Sessions []queue.SessionLock
}

func (o Save) begin(_ *Shard, r *time.Time) work {
	raw := bodies.SavedState(o.State)
	return once(func(s *Shard) error {
		hq, err := s.use(o.Queue)
		if err == nil {
			err = checkSessionLocks(hq.q, s.tx.Now(), []queue.Token{o.Token}, o.Sessions)
		}
		switch {
		case err != nil:
			return err
		case !hq.q.LockValid(s.tx.Now(), o.Token):
			_, err := hq.q.Renew(s.tx.Now(), o.Token) // says what was lost
			return err
		case !hq.q.SavedFits(o.Token.Seq, len(raw), hq.entity.parts[Main].q.Config().MaxBytes): // also of dead letters
			return queue.ErrFull
		case !s.tx.HasSpace(len(raw) + perFailure + perRenewal):
			return ErrDiskFull
		}
		ref, err := s.tx.StoreOne(raw)
		if err != nil {
			return err
		}
		defer s.collectEffects(hq)
		if err := hq.q.Save(s.tx.Now(), o.Token, ref, s.out(hq)); err != nil {
			return err
		}
		*r, err = hq.q.RenewDurably(s.tx.Now(), o.Token, s.out(hq))
		s.touch(hq)
		return err
	})
}

// CheckSessionLocks fails with queue.ErrSessionLockLost if one of the messages is in
// a session of which Sessions has no lock that is valid. Messages that do not exist
// any more are ignored. Without sessions in the queue it always succeeds.
type CheckSessionLocks struct {
	Queue    QueueID
	Tokens   []queue.Token
	Sessions []queue.SessionLock
}

func (o CheckSessionLocks) begin(*Shard, *struct{}) work {
	return onceOf(len(o.Tokens), func(s *Shard) error {
		q, err := s.inspect(o.Queue)
		if err != nil {
			return err
		}
		return checkSessionLocks(q, s.tx.Now(), o.Tokens, o.Sessions)
	})
}

func checkSessionLocks(q *queue.Queue, now time.Time, tokens []queue.Token, locks []queue.SessionLock) error {
	if !q.Config().Sessions {
		return nil
	}
	valid := make(map[string]bool, len(locks))
	for _, l := range locks {
		valid[l.ID] = valid[l.ID] || q.SessionLockValid(now, l)
	}
	for _, t := range tokens {
		if d, ok := q.Lookup(t.Seq); ok && !valid[d.Session] {
			return queue.ErrSessionLockLost
		}
	}
	return nil
}

// CancelScheduled removes scheduled messages, all of them or none. A number that
// occurs twice counts once.
type CancelScheduled struct {
	Queue QueueID
	Seqs  []queue.SeqNo
}

func (o CancelScheduled) begin(*Shard, *struct{}) work {
	return onceOf(len(o.Seqs), func(s *Shard) error {
		return s.change(o.Queue, func(q *queue.Queue, out *queue.Effects) error {
			return q.Cancel(s.tx.Now(), o.Seqs, out) // which checks first
		})
	})
}

// LockDeferred locks deferred messages by their numbers, all of them or none, and
// replies with the deliveries. One that has expired is not found, and dropped or
// dead-lettered now that it is asked for.
type LockDeferred struct {
	Queue QueueID
	Seqs  []queue.SeqNo
	// Session is the lock that the caller has on the session they are in; zero is
	// none.
	Session queue.SessionLock
}

func (o LockDeferred) begin(_ *Shard, r *[]Delivery) work {
	return onceOf(len(o.Seqs), func(s *Shard) error {
		hq, err := s.use(o.Queue)
		if err != nil {
			return err
		}
		expired, err := o.check(s, hq.q)
		if err != nil {
			return err
		}
		defer s.collectEffects(hq)
		w := queue.TakeOptions{Session: o.Session}
		for _, seq := range expired {
			_, _ = hq.q.TakeSeq(s.tx.Now(), seq, w, s.out(hq)) // which removes it
		}
		if len(expired) > 0 {
			return deferredNotFound(expired[len(expired)-1])
		}
		for _, seq := range o.Seqs {
			qd, err := hq.q.TakeSeq(s.tx.Now(), seq, w, s.out(hq))
			if err != nil {
				return err
			}
			*r = append(*r, s.delivery(hq, qd))
		}
		return nil
	})
}

// check returns those of the messages that have expired, or why none can be locked.
func (o *LockDeferred) check(s *Shard, q *queue.Queue) (expired []queue.SeqNo, err error) {
	inSession := o.Session != queue.SessionLock{}
	if inSession && !q.SessionLockValid(s.tx.Now(), o.Session) {
		return nil, queue.ErrSessionLockLost
	}
	if q.Config().ReceivePaused {
		return nil, queue.ErrReceivePaused
	}
	for _, seq := range o.Seqs {
		d, ok := q.Lookup(seq)
		if !ok || d.State != queue.Deferred || inSession && d.Session != o.Session.ID {
			return nil, deferredNotFound(seq)
		}
		if !d.ExpiresAt.IsZero() && !d.ExpiresAt.After(s.tx.Now()) {
			expired = append(expired, seq)
		}
	}
	if q.Config().Sessions && !inSession {
		return nil, queue.ErrSessionLockLost
	}
	return expired, nil
}

func deferredNotFound(seq queue.SeqNo) error {
	return fmt.Errorf("%w: deferred message %d", queue.ErrNotFound, seq)
}

// LockMessages locks messages by their numbers, as many as can be, and replies with a
// token for each: zero if that one cannot be locked.
type LockMessages struct {
	Queue QueueID
	Seqs  []queue.SeqNo
}

func (o LockMessages) begin(_ *Shard, r *[]queue.Token) work {
	return onceOf(len(o.Seqs), func(s *Shard) error {
		return s.change(o.Queue, func(q *queue.Queue, out *queue.Effects) error {
			*r = make([]queue.Token, len(o.Seqs))
			for i, seq := range o.Seqs {
				if d, err := q.TakeSeq(s.tx.Now(), seq, queue.TakeOptions{}, out); err == nil {
					(*r)[i] = d.Token
				}
			}
			return nil
		})
	})
}

// Purge removes up to Max messages that are not locked and were enqueued before a
// time, the lowest numbers first, and replies how many. Those that come while it is
// at work stay. An error does not undo what was removed before.
type Purge struct {
	Queue  QueueID
	Before time.Time // zero is all
	Max    int       // zero is all
}

func (o Purge) begin(_ *Shard, r *int) work {
	p := queue.Purge{Before: o.Before, Max: o.Max}
	return func(s *Shard) (done bool, err error) {
		err = s.change(o.Queue, func(q *queue.Queue, out *queue.Effects) error {
			done = q.Purge(s.tx.Now(), &p, s.opts.VisitStep, out)
			return nil
		})
		*r = p.Gone
		return done, err
	}
}

// Remove removes single messages that are not locked. It replies nil if all are
// removed now, else an error or nil for each.
type Remove struct {
	Queue QueueID
	Seqs  []queue.SeqNo
}

func (o Remove) begin(_ *Shard, r *[]error) work {
	return onceOf(len(o.Seqs), func(s *Shard) error {
		return s.change(o.Queue, func(q *queue.Queue, out *queue.Effects) error {
			for i, seq := range o.Seqs {
				err := q.Remove(s.tx.Now(), seq, out)
				if err != nil && *r == nil {
					*r = make([]error, len(o.Seqs))
				}
				if err != nil {
					(*r)[i] = err
				}
			}
			return nil
		})
	})
}
