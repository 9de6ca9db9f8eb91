// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
)

// group is what belongs to the open group beside its records, which are in Engine.eff.
type group struct {
	replies []reply // that wait for it
	spare   []reply // buffer for those of the next group
	awaited bool    // it has to be committed at the end of the step
}

// reply is an answer that is owed.
type reply struct {
	to  Replier
	err error
}

func (r reply) give() { r.to.Reply(r.err) }

// commit is a group on its way to the disk and the replies that wait for it.
type commit struct {
	at      journal.Position
	replies []reply
}

// How long records without an acknowledgement may wait for others, and how many
// bytes of them.
const (
	maxCommitDelay = 5 * time.Millisecond
	lazyBytes      = 64 << 10
)

// mustCommit reports whether the open group has to be committed now. Records that no caller
// waits for can be appended with what comes next: the disk is then free for a
// caller who does wait.
func (e *Engine) mustCommit() bool {
	g := &e.group
	if e.eff.Count() == 0 || len(g.replies) > 0 || g.awaited || e.eff.Size() > lazyBytes || e.snapshot.active() {
		return true
	}
	if e.commitBy.IsZero() {
		e.commitBy = e.now.Add(maxCommitDelay)
	}
	return !e.now.Before(e.commitBy)
}

// commit appends the open group, and has its replies wait for the position
// that makes them true. Without records they wait for what was appended
// before: they may speak of it.
func (e *Engine) commit() {
	e.commitBy = time.Time{}
	if e.failed != nil {
		// The step broke off in the middle: what it gathered may be half of
		// something, and must never reach the disk.
		e.failReplies(e.failed)
		return
	}
	e.host.Commit()
	if e.eff.Count() > 0 {
		switch err := e.appendRecords(); {
		case errors.Is(err, journal.ErrFull):
			// Nothing is lost and no reply was sent: it stays as it is.
			if !e.stuck && e.stuckSince.IsZero() {
				e.stuckSince = e.now
			}
			e.stuck, e.retryAt = true, e.now.Add(retryFull)
			return
		case err != nil:
			e.failed = err
			e.failReplies(err)
			return
		}
	}
	e.host.Appended(e.tail)
	if e.tail <= e.durable && len(e.waiting) == 0 && !e.silenced() {
		for _, r := range e.group.replies {
			r.give()
		}
	} else if len(e.group.replies) > 0 {
		e.waiting = append(e.waiting, commit{e.tail, e.group.takeReplies()})
	}
	e.resetGroup()
}

// giveReplies gives the replies that wait for what is durable.
func (e *Engine) giveReplies() {
	n := 0
	for n < len(e.waiting) && e.waiting[n].at <= e.durable {
		c := &e.waiting[n]
		for _, r := range c.replies {
			r.give()
		}
		e.group.recycle(c.replies)
		n++
	}
	if n > 0 {
		rest := copy(e.waiting, e.waiting[n:])
		clear(e.waiting[rest:])
		e.waiting = e.waiting[:rest]
	}
}

// failReplies answers what waits for the open group, which will never be appended.
func (e *Engine) failReplies(err error) {
	for _, r := range e.group.replies {
		r.to.Reply(err)
	}
	e.resetGroup()
}

// retryFull is how often something is tried again for which there was no space. A
// change of the journal's status is a reason, too.
const retryFull = 200 * time.Millisecond

// retry appends the group that found no space, and reports whether it could.
func (e *Engine) retry() bool {
	e.observe(e.mail.lastStatus())
	e.stuck = false
	e.commit()
	if !e.stuck && e.snapshot.end == Pending {
		e.snapshot.end = e.tail
	}
	if !e.stuck {
		e.stuckSince = time.Time{}
	}
	return !e.stuck
}

// refuseAfter is how long commands wait for space on the disk. Those that come later are
// refused at once, until there is some.
const refuseAfter = 5 * time.Second

// refuseWaiting answers the callers that have waited for space long enough. What the open
// group has done stays done, and its callers wait on: it is appended when there is space.
func (e *Engine) refuseWaiting() {
	if e.now.Sub(e.stuckSince) < refuseAfter {
		return
	}
	refuse := func(cs []Command) (kept []Command) {
		for _, c := range cs {
			if r, ok := c.(Refusable); ok && r.Refusable() {
				c.Fail(ErrDiskFull)
			} else {
				kept = append(kept, c)
			}
		}
		return kept
	}
	e.stepwise.refuse(ErrDiskFull)
	e.delayed = refuse(e.delayed)
	var kept []Command
	for more := true; more; {
		cs, _ := e.mail.take(maxTake)
		more = len(cs) == maxTake
		kept = append(kept, refuse(cs)...)
	}
	e.mail.putBack(kept)
}

// commitIfFull commits what was gathered if it is enough for a group. It is
// called between commands, and within those that need not be one group.
func (e *Engine) commitIfFull() {
	if e.eff.Size()+e.eff.Count()*journal.RecordSize(0) > e.groupLimit {
		e.commit()
	}
}

// resetGroup forgets the open group, after it was appended or given up.
func (e *Engine) resetGroup() {
	e.eff.ResetRecords()
	g := &e.group
	clear(g.replies)
	g.replies = g.replies[:0]
	g.awaited = false
}

// takeReplies passes the replies of the group to a commit, and goes on with a buffer that an
// earlier commit has given back.
func (g *group) takeReplies() []reply {
	replies := g.replies
	g.replies, g.spare = g.spare, nil
	return replies
}

// recycle takes back what takeReplies gave.
func (g *group) recycle(replies []reply) {
	if cap(replies) > cap(g.spare) {
		clear(replies)
		g.spare = replies[:0]
	}
}
