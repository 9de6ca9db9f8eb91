// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// RenewSession extends the lock of a session and replies until when it holds;
// queue.ErrSessionLockLost.
type RenewSession struct {
	Queue QueueID
	Lock  queue.SessionLock
}

func (o RenewSession) begin(_ *Shard, r *time.Time) work {
	return once(func(s *Shard) error {
		return s.change(o.Queue, func(q *queue.Queue, _ *queue.Effects) (err error) {
			*r, err = q.RenewSession(s.tx.Now(), o.Lock)
			return err
		})
	})
}

// findSessionState replies where the state of a session is; zero if it has none.
// queue.ErrSessionLockLost.
type findSessionState struct {
	Queue QueueID
	Lock  queue.SessionLock
}

func (o findSessionState) begin(_ *Shard, r *queue.Ref) work {
	return once(func(s *Shard) error {
		q, err := s.inspect(o.Queue)
		if err != nil {
			return err
		}
		if !q.SessionLockValid(s.tx.Now(), o.Lock) {
			return queue.ErrSessionLockLost
		}
		*r, _ = q.SessionState(o.Lock.ID)
		return nil
	})
}

// SessionState returns the state that was set for the session of a lock, nil if none
// was.
func (s *Shard) SessionState(ctx context.Context, id QueueID, lock queue.SessionLock) ([]byte, error) {
	var last queue.Ref // where it was not
	for {
		ref, err := Do(ctx, s, findSessionState{id, lock})
		if err != nil || ref == (queue.Ref{}) {
			return nil, err
		}
		m, err := s.Read(ctx, ref)
		if errors.Is(err, journal.ErrFreed) && ctx.Err() == nil && ref != last {
			last = ref
			continue // it was moved, or set anew; if neither, it is lost
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

// SetSessionState sets the state of the session of a lock, or clears it;
// queue.ErrSessionLockLost, queue.ErrFull, ErrMemory, ErrDiskFull.
type SetSessionState struct {
	Queue QueueID
	Lock  queue.SessionLock
	State []byte
	Clear bool
}

func (o SetSessionState) begin(*Shard, *struct{}) work {
	draft := message.Draft{Body: o.State}
	raw := draft.Encode(nil)
	return once(func(s *Shard) error {
		q, err := s.inspect(o.Queue)
		switch {
		case err != nil:
			return err
		case !q.SessionLockValid(s.tx.Now(), o.Lock):
			return queue.ErrSessionLockLost
		case !o.Clear && !q.StateFits(o.Lock.ID, len(o.State)):
			return queue.ErrFull
		case !o.Clear && !s.tx.HasSpace(len(raw)+2*(len(o.Lock.ID)+perFailure)): // and to clear it
			return ErrDiskFull
		case !o.Clear && !s.claimState(o.Queue, o.Lock.ID):
			return ErrMemory
		}
		var ref queue.Ref
		if !o.Clear {
			if ref, err = s.tx.StoreOne(raw); err != nil {
				return err
			}
		}
		return s.change(o.Queue, func(q *queue.Queue, out *queue.Effects) error {
			q.SetSessionState(s.tx.Now(), o.Lock.ID, ref, out)
			return nil
		})
	})
}

// ListSessions replies with the sessions that have messages or a state, or with Since
// those whose state changed after it, in no order. One that ended and began anew
// while they were listed may be there twice.
type ListSessions struct {
	Queue QueueID
	Since time.Time
}

func (o ListSessions) begin(_ *Shard, r *[]string) work {
	from := 0
	return func(s *Shard) (bool, error) {
		q, err := s.inspect(o.Queue)
		if err != nil {
			return false, err
		}
		var found []string
		found, from = q.Sessions(o.Since, from, s.opts.VisitStep)
		*r = append(*r, found...)
		return from == 0, nil
	}
}
