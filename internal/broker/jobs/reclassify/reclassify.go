// SPDX-License-Identifier: Apache-2.0

package reclassify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/jobs"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Chunk is how many messages are examined between other operations.
const Chunk = 500

const (
	// diskFullPause is how long a reclassification waits for space on the disk.
	diskFullPause = 5 * time.Second
	// sliceTime is how long one queue is worked on before others have their turn. The
	// conditions of a policy may take milliseconds for each of millions of messages.
	sliceTime = 100 * time.Millisecond
)

// Catalog is what the job needs of the catalog of entities.
type Catalog interface {
	MarkClassified(ctx context.Context, n *catalog.Entity, by *catalog.Classifier) error
}

// Reclassifier classifies the stored messages of queues whose policy has changed: those
// of different owners in turns, and those of one owner in turns. The owner of subscriptions
// is their topic. The work left is durable: a definition has the revision by which its
// messages were classified.
type Reclassifier struct {
	catalog Catalog
	log     *slog.Logger
	job     *jobs.Handle

	mu      sync.Mutex
	passes  map[*catalog.Entity]*pass        // guarded by mu
	owners  []string                         // guarded by mu; that have passes, in the order of their turns
	lines   map[string][]*pass               // guarded by mu; of each owner, in the order of their turns
	callers map[*catalog.Entity][]chan error // guarded by mu; that wait for the end
	over    bool                             // guarded by mu; Finish was called
}

// New returns a reclassifier without queues; runner runs it.
func New(c Catalog, runner *jobs.Runner, log *slog.Logger) *Reclassifier {
	r := &Reclassifier{catalog: c, log: log, passes: make(map[*catalog.Entity]*pass), lines: make(map[string][]*pass),
		callers: make(map[*catalog.Entity][]chan error)}
	r.job = runner.Add(r)
	return r
}

// Add queues a queue for reclassification.
func (r *Reclassifier) Add(n *catalog.Entity) {
	r.mu.Lock()
	if p := r.passes[n]; p != nil {
		p.added = true
	} else {
		r.join(&pass{n: n})
	}
	r.mu.Unlock()
	r.job.Wake()
}

// join adds a pass to the line of its owner; mu is held.
func (r *Reclassifier) join(p *pass) {
	owner := entity.Owner(p.n.Path)
	if len(r.lines[owner]) == 0 {
		r.owners = append(r.owners, owner)
	}
	r.lines[owner] = append(r.lines[owner], p)
	r.passes[p.n] = p
}

// Wait returns when the stored messages of a queue are classified by its policy, or with
// catalog.ErrStopping if the jobs have ended.
func (r *Reclassifier) Wait(ctx context.Context, n *catalog.Entity) error {
	done := make(chan error, 1)
	r.mu.Lock()
	if def := n.Definition(); def.Classified == def.PolicyRevision {
		r.mu.Unlock()
		return nil
	}
	if r.over {
		r.mu.Unlock()
		return catalog.ErrStopping
	}
	r.callers[n] = append(r.callers[n], done)
	r.mu.Unlock()
	r.Add(n) // once more, in case that it has failed before
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		r.forget(n, done)
		return context.Cause(ctx)
	}
}

// forget removes a caller that waits no more.
func (r *Reclassifier) forget(n *catalog.Entity, done chan error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.callers[n] = slices.DeleteFunc(r.callers[n], func(c chan error) bool { return c == done })
	if len(r.callers[n]) == 0 {
		delete(r.callers, n)
	}
}

// Name implements jobs.Job.
func (r *Reclassifier) Name() string { return "reclassify" }

// Run implements jobs.Job: it takes a slice of the work on one queue.
func (r *Reclassifier) Run(ctx context.Context) (jobs.Next, error) {
	now := time.Now()
	p, next := r.next(now)
	if p == nil {
		return next, nil
	}
	done, err := p.slice(ctx, r.catalog, now.Add(sliceTime))
	switch {
	case errors.Is(err, queueserver.ErrSuperseded):
		r.leave(p) // a newer policy was added, or is about to be, with its callers
		return jobs.Again(), nil
	case errors.Is(err, queueserver.ErrDiskFull): // it goes on there
		r.postpone(p, time.Now().Add(diskFullPause))
		return jobs.Again(), nil
	case err == nil && !done:
		return jobs.Again(), nil
	case err == nil:
		p.report(ctx, r.log)
	}
	r.leave(p)
	r.answer(p.n, err)
	if err == nil || ctx.Err() != nil || errors.Is(err, catalog.ErrNotFound) {
		return jobs.Again(), nil
	}
	r.log.LogAttrs(ctx, slog.LevelError, "messages not classified by the new policy",
		slog.String("entity", p.n.Path), slog.Any("err", err))
	return jobs.Again(), err
}

// next returns the pass whose turn it is, which goes to the end of its line, and its owner
// behind the others. Without any it returns when there is one.
func (r *Reclassifier) next(now time.Time) (*pass, jobs.Next) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var soonest time.Time
	for i, owner := range r.owners {
		line := r.lines[owner]
		for j, p := range line {
			if p.after.After(now) {
				if soonest.IsZero() || p.after.Before(soonest) {
					soonest = p.after
				}
				continue
			}
			p.added = false
			r.lines[owner] = append(slices.Delete(line, j, j+1), p)
			r.owners = append(slices.Delete(r.owners, i, i+1), owner)
			return p, jobs.Again()
		}
	}
	if soonest.IsZero() {
		return nil, jobs.Next{}
	}
	return nil, jobs.After(soonest.Sub(now))
}

// postpone has a pass wait until a time.
func (r *Reclassifier) postpone(p *pass, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.after = until
}

// leave ends a pass. If its queue was added meanwhile, there is another one.
func (r *Reclassifier) leave(p *pass) {
	r.mu.Lock()
	defer r.mu.Unlock()
	owner := entity.Owner(p.n.Path)
	delete(r.passes, p.n)
	r.lines[owner] = slices.DeleteFunc(r.lines[owner], func(o *pass) bool { return o == p })
	if len(r.lines[owner]) == 0 {
		delete(r.lines, owner)
		r.owners = slices.DeleteFunc(r.owners, func(o string) bool { return o == owner })
	}
	if p.added {
		r.join(&pass{n: p.n})
	}
}

// Finish implements jobs.Finisher: it answers all callers; the next process finds the work
// that is left.
func (r *Reclassifier) Finish(context.Context) {
	r.mu.Lock()
	r.over = true
	all := r.callers
	r.callers = make(map[*catalog.Entity][]chan error)
	r.mu.Unlock()
	for _, callers := range all {
		for _, c := range callers {
			c <- catalog.ErrStopping
		}
	}
}

// answer tells those who wait for a queue what became of it. If that is nothing but the
// end of a policy that was replaced meanwhile, they wait for the next, which is in line.
func (r *Reclassifier) answer(n *catalog.Entity, err error) {
	r.mu.Lock()
	var callers []chan error
	if def := n.Definition(); err != nil || def.Classified == def.PolicyRevision {
		callers = r.callers[n]
		delete(r.callers, n)
	}
	r.mu.Unlock()
	for _, c := range callers {
		c <- err
	}
}

// classifiedMessage is a message and the class that a policy gives it.
type classifiedMessage struct {
	was  queue.Delivery
	next queue.Classification
}

func (j classifiedMessage) changes() bool {
	return j.was.Level != j.next.Level || j.was.Class != j.next.Class || j.was.Key != j.next.Key
}

// chunk returns some of the messages from a sequence number on, in all states.
func chunk(ctx context.Context, n *catalog.Entity, from queue.SeqNo) (queueserver.Peeked, error) {
	found, err := queueserver.Do(ctx, n.Shard, queueserver.Peek{Queue: n.QueueID(queueserver.Main), From: from, Max: Chunk, Chunk: true})
	for i := range found.Messages {
		found.Messages[i].Unload() // else they keep what the cache has dropped
	}
	return found, err
}

// evaluate classifies a stored message by a policy, between begin and end. It keeps nothing of its
// body: a chunk is hundreds of messages.
func evaluate(c *catalog.Classifier, d *queueserver.Delivery, begin func() (end func())) (classifiedMessage, error) {
	defer d.Unload()
	m, err := d.Message()
	if err != nil {
		return classifiedMessage{}, err
	}
	defer begin()()
	v := c.Classify(m)
	return classifiedMessage{d.Delivery, queue.Classification{Level: queue.Level(v.Level), Class: queue.Class(v.Class), Key: v.Key}}, nil
}

// atOnce begins an evaluation that waits for nothing.
func atOnce() (end func()) { return func() {} }

// sorter classifies the messages of a queue by one policy.
type sorter struct {
	n          *catalog.Entity
	classifier *catalog.Classifier
	unread     int   // messages that could not be read
	err        error // of the first of them
	keyless    int   // messages for whose fair key there was no memory
	// renumbered says that a scheduled message was gone before it was classified. Its
	// time may have come, and it has then a number that the pass may not have reached.
	renumbered bool
}

// sort classifies the messages of a chunk until a time, at least one, and returns how many.
// Messages are read outside of the shard; one that was removed or changed meanwhile is skipped.
// One that cannot be read must not delay the others: it keeps its level and loses its class,
// which is a number of the old policy.
func (s *sorter) sort(ctx context.Context, ds []queueserver.Delivery, until time.Time) (n int, err error) {
	o := queueserver.Reclassify{ID: s.n.ID, Revision: s.classifier.Policy.Revision}
	scheduled := make(map[queue.SeqNo]bool)
	var unread []error
	for i := range ds {
		if i > 0 && !time.Now().Before(until) {
			break
		}
		n = i + 1
		d := &ds[i]
		scheduled[d.Seq] = d.State == queue.Scheduled
		j, err := evaluate(s.classifier, d, atOnce)
		switch {
		case ctx.Err() != nil:
			return n, context.Cause(ctx)
		case errors.Is(err, catalog.ErrStopping):
			return n, err
		case err != nil:
			if errors.Is(err, catalog.ErrMessageNotFound) {
				s.renumbered = s.renumbered || d.State == queue.Scheduled
			} else {
				unread = append(unread, fmt.Errorf("read message %d: %w", d.Seq, err))
			}
			j = classifiedMessage{d.Delivery, queue.Classification{Level: d.Level, Key: d.Key}}
		}
		if j.changes() {
			o.Changes = append(o.Changes, queueserver.Reclassified{Seq: j.was.Seq, To: j.next})
		}
	}
	if len(o.Changes) > 0 {
		done, err := queueserver.Do(ctx, s.n.Shard, o)
		if err != nil {
			return n, err
		}
		s.keyless += done.Keyless
		s.renumbered = s.renumbered || slices.ContainsFunc(done.Missing, func(seq queue.SeqNo) bool { return scheduled[seq] })
	}
	if s.unread == 0 && len(unread) > 0 {
		s.err = unread[0]
	}
	s.unread += len(unread)
	return n, nil
}
