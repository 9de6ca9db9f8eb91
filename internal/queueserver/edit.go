// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/bodies"
)

// ErrNoPropertySpace answers a settlement with properties while the disk is full: each message
// would need a new body. The locks do not change. It unwraps to ErrDiskFull.
var ErrNoPropertySpace = fmt.Errorf("%w: there is no space for messages with new properties", ErrDiskFull)

// ErrUnreadable answers a settlement with properties of a message whose body cannot
// be read. The message has become a dead letter, if it was not one already.
var ErrUnreadable = errors.New("queueserver: message body is unreadable")

// editing is a settlement that is done in steps: one of many messages, or one that writes
// properties into its messages, each of which gets a new body. It goes through the tokens
// in order; at the first whose body is not in memory it is parked, until that and those of
// the next few tokens were read. After editBytes of work it is parked as well, and goes on
// in a later step.
type editing struct {
	o     *settling
	queue *hostedQueue
	next  int      // token to go on with
	read  []*fetch // bodies of the tokens from next on, as far as they had to be read
	left  int      // of them that are not read yet
	over  bool     // it was answered: its queue was dropped
	kept  bool     // it is among those that are parked at its queue
	// by is the consumer whose Detach waits for it; nil if none does.
	by *consumer
}

// advance settles as many messages as it has the bodies of.
func (e *editing) advance(s *Shard) {
	o, hq, size, worked := e.o, e.queue, 0, 0
	for ; e.next < len(o.Tokens); e.next++ {
		if worked >= editBytes {
			s.collectEffects(hq)
			e.pause(s, size)
			return
		}
		t := o.Tokens[e.next]
		worked += settleWork // also if it is refused
		if !o.edits() {
			if e.next%few == 0 && !o.hasSpace(s, few) {
				o.refuseFrom(e.next, ErrDiskFull)
				e.next = len(o.Tokens)
				break
			}
			o.settle(s, hq, e.next, t)
			size += journal.RecordSize(0)
			e.commitFew(s)
			continue
		}
		// A refusal does not change the message and its lock.
		if err := e.refusal(s, t); err != nil {
			o.refuse(e.next, err)
			continue
		}
		m, err := e.body(s, t)
		switch {
		case errors.Is(err, errNotRead):
			s.collectEffects(hq)
			e.park(s)
			return
		case err != nil:
			o.refuse(e.next, err)
			continue
		}
		worked += m.Size() + changeWork*len(o.Properties) // also if the result is refused
		raw, err := bodies.Edit(m, o.Properties)
		if err != nil {
			o.refuse(e.next, err)
			continue
		}
		size += len(raw)
		if !s.tx.HasSpace(len(raw) + perFailure) {
			o.refuse(e.next, ErrNoPropertySpace)
			continue
		}
		ref, err := s.tx.StoreOne(raw)
		switch {
		case err == nil:
			err = hq.q.Rewrite(s.tx.Now(), t, ref, s.out(hq))
		case errors.Is(err, ErrDiskFull):
			err = ErrNoPropertySpace
		}
		if err != nil {
			o.refuse(e.next, err)
			continue
		}
		if setsState(o.Properties) { // it is newer than the one that was saved
			_ = hq.q.Save(s.tx.Now(), t, queue.Ref{}, s.out(hq)) // the lock is valid: Rewrite has just used it
		}
		o.settle(s, hq, e.next, t)
		if o.Disposition == Release {
			// No failure shows that it has changed.
			s.setFence(hq)
		}
		e.commitFew(s)
	}
	o.finish(s, hq)
	e.release(s)
}

// setsState reports whether a message that is given back gets a state with it.
func setsState(changes []message.Change) bool {
	return slices.ContainsFunc(changes, func(c message.Change) bool { return strings.EqualFold(c.Name, message.PropertyState) })
}

// commitFew commits the open group from time to time, if it is large.
func (e *editing) commitFew(s *Shard) {
	if e.next%few == few-1 {
		s.collectEffects(e.queue)
		s.tx.CommitIfFull()
	}
}

// pause has the settlement go on in a later step, when the size bytes that this one
// wrote are durable.
func (e *editing) pause(s *Shard, size int) {
	e.keep(s)
	s.tx.Later(s.inSteps(e.queue.entity.ID, func(s *Shard) (bool, error) {
		if !e.over {
			e.advance(s)
		}
		return true, nil
	}, nil), size)
}

// complete settles all the rest in this step, because there are no more.
func (e *editing) complete(s *Shard) {
	for !e.o.edits() && e.next < len(e.o.Tokens) && !s.tx.Stuck() {
		e.advance(s)
	}
}

// keep adds the settlement to those that are parked at its queue. The Detach of a consumer
// in a session waits for it: it would fail if the session were released first. Other locks
// outlive their consumer.
func (e *editing) keep(s *Shard) {
	if e.kept {
		return
	}
	e.kept = true
	e.queue.parked = append(e.queue.parked, e)
	if c := s.consumers[e.o.Consumer]; c != nil && !c.leaving && c.queue == e.queue && c.take.Session != (queue.SessionLock{}) {
		e.by = c
		c.waits++
	}
}

// refusal returns why a message cannot be settled like this.
func (e *editing) refusal(s *Shard, t queue.Token) error {
	q := e.queue.q
	switch {
	case !q.LockValid(s.tx.Now(), t):
		_, err := q.Release(s.tx.Now(), t, s.out(e.queue)) // changes nothing: it returns what is lost
		return err
	case e.o.Disposition == Reject && q.Config().DeadLetterQueue:
		return queue.ErrNotAllowed
	case s.tx.Full():
		return ErrNoPropertySpace // the reserve is for operations that free space
	}
	return nil
}

const (
	// editBytes is about how much one step of such a settlement writes, or reads and changes
	// for nothing.
	editBytes = 1 << 20
	// changeWork is how many bytes are written in the time that a change of a few bytes takes.
	changeWork = 64
	// settleWork is what settling, or refusing, one message counts beside: a thousand are one step.
	settleWork = 1 << 10
)

// errNotRead says that a body has to be read first.
var errNotRead = errors.New("queueserver: body is not in memory")

// body returns the message that a token locks, with its reason if it has one.
func (e *editing) body(s *Shard, t queue.Token) (*message.Message, error) {
	d, _ := e.queue.q.Lookup(t.Seq)
	if d.Saved = (queue.Ref{}); bodies.Alone(&d) { // the saved state stays beside the new body
		if m := s.cache.Get(d.Body); m != nil {
			return m, nil
		}
	}
	i := slices.IndexFunc(e.read, func(f *fetch) bool { return f.d.Token == t })
	if i < 0 {
		return nil, errNotRead
	}
	switch f := e.read[i]; {
	case errors.Is(f.err, journal.ErrClosed):
		return nil, f.err
	case f.err != nil && e.queue.part == Main:
		if err := s.quarantine(e.queue, t.Seq, t, f.err); err != nil {
			return nil, err
		}
		return nil, ErrUnreadable
	case f.err != nil || f.damaged:
		return nil, ErrUnreadable
	default:
		return f.msg, nil
	}
}

// park has the bodies of the next tokens read, a bounded number of them.
func (e *editing) park(s *Shard) {
	e.read = e.read[:0]
	size := 0
	for _, t := range e.o.Tokens[e.next:min(len(e.o.Tokens), e.next+editBytes/settleWork)] {
		if len(e.read) == engine.FetchCount || size >= engine.FetchBytes {
			break
		}
		d, ok := e.queue.q.Lookup(t.Seq)
		if !ok || !e.queue.q.LockValid(s.tx.Now(), t) {
			continue
		}
		d.Token, d.Saved = t, queue.Ref{}
		f := &fetch{queue: e.queue, d: d, taker: e}
		e.read = append(e.read, f)
		size += int(d.Size())
		s.tx.Fetch(f)
	}
	e.left = len(e.read)
	e.keep(s)
}

// fetched implements fetchTaker.
func (e *editing) fetched(s *Shard, _ *fetch) {
	if e.left--; e.left == 0 && !e.over {
		e.advance(s)
	}
}

// release detaches its consumer if that waits for nothing else.
func (e *editing) release(s *Shard) {
	if !e.kept {
		return
	}
	e.queue.parked = slices.DeleteFunc(e.queue.parked, func(p *editing) bool { return p == e })
	if c := e.by; c != nil {
		if c.waits--; c.waits == 0 && c.leaving {
			s.detach(c)
		}
	}
}
