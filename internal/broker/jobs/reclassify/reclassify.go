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
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Chunk is how many messages are examined between other operations.
const Chunk = 500

// diskFullPause is how long a reclassification waits for space on the disk.
const diskFullPause = 5 * time.Second

// Catalog is what the job needs of the catalog of entities.
type Catalog interface {
	MarkClassified(ctx context.Context, n *catalog.Entity, by *catalog.Classifier) error
}

// Reclassifier classifies the stored messages of queues whose policy has changed, one
// queue after the other. The work left is durable: a definition has the revision by which
// its messages were classified.
type Reclassifier struct {
	catalog Catalog
	log     *slog.Logger
	job     *jobs.Handle

	mu      sync.Mutex
	waiting []*catalog.Entity                // guarded by mu; in the order they were added
	callers map[*catalog.Entity][]chan error // guarded by mu; that wait for the end
	over    bool                             // guarded by mu; Finish was called
}

// New returns a reclassifier without queues; runner runs it.
func New(c Catalog, runner *jobs.Runner, log *slog.Logger) *Reclassifier {
	r := &Reclassifier{catalog: c, log: log, callers: make(map[*catalog.Entity][]chan error)}
	r.job = runner.Add(r)
	return r
}

// Add queues a queue for reclassification.
func (r *Reclassifier) Add(n *catalog.Entity) {
	r.mu.Lock()
	r.waiting = append(r.waiting, n)
	r.mu.Unlock()
	r.job.Wake()
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
		return context.Cause(ctx)
	}
}

// Name implements jobs.Job.
func (r *Reclassifier) Name() string { return "reclassify" }

// Run implements jobs.Job: it classifies the messages of one queue.
func (r *Reclassifier) Run(ctx context.Context) (jobs.Next, error) {
	n := r.next()
	if n == nil {
		return jobs.Next{}, nil
	}
	err := r.reclassify(ctx, n)
	if errors.Is(err, queueserver.ErrSuperseded) {
		return jobs.Again(), nil // a newer policy is queued, with its callers
	}
	if errors.Is(err, queueserver.ErrDiskFull) { // it begins again, and finds less to change
		r.mu.Lock()
		r.waiting = append(r.waiting, n)
		r.mu.Unlock()
		return jobs.After(diskFullPause), nil
	}
	r.answer(n, err)
	if err == nil || ctx.Err() != nil || errors.Is(err, catalog.ErrNotFound) {
		return jobs.Again(), nil
	}
	r.log.LogAttrs(ctx, slog.LevelError, "messages not classified by the new policy",
		slog.String("entity", n.Path), slog.Any("err", err))
	return jobs.Again(), err
}

func (r *Reclassifier) next() *catalog.Entity {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return nil
	}
	n := r.waiting[0]
	r.waiting = r.waiting[1:]
	return n
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

// reclassify applies the policy of a queue to all its messages.
func (r *Reclassifier) reclassify(ctx context.Context, n *catalog.Entity) error {
	def := n.Definition()
	if def.Classified == def.PolicyRevision {
		return nil
	}
	// Senders that loaded the old policy may still send messages. The shard has the last
	// sequence number of them: what arrived since a pass began is examined in another one.
	s := sorter{n: n, classifier: def.Classifier}
	for mark, again := queue.SeqNo(0), true; again; {
		s.renumbered = false
		next, err := walk(ctx, n, mark, s.sort)
		if err != nil {
			return err
		}
		if s.renumbered {
			mark = next
			continue
		}
		end, err := queueserver.Do(ctx, n.Shard, queueserver.EndReclassify{ID: n.ID, Revision: def.PolicyRevision, Examined: next})
		if err != nil {
			return err
		}
		mark, again = next, end.Again
	}
	if s.unread > 0 {
		r.log.LogAttrs(ctx, slog.LevelError, "messages that cannot be read keep their level and are in no class",
			slog.String("entity", n.Path), slog.Int("count", s.unread), slog.Any("err", s.err))
	}
	if s.keyless > 0 {
		r.log.LogAttrs(ctx, slog.LevelWarn, "messages are in turn without a fair key: there is no memory for more (limits.storedMemory)",
			slog.String("entity", n.Path), slog.Int("count", s.keyless))
	}
	return r.catalog.MarkClassified(ctx, n, def.Classifier)
}

// classifiedMessage is a message and the class that a policy gives it.
type classifiedMessage struct {
	was  queue.Delivery
	next queue.Classification
}

func (j classifiedMessage) changes() bool {
	return j.was.Level != j.next.Level || j.was.Class != j.next.Class || j.was.Key != j.next.Key
}

// walk calls fn with every message from a sequence number on, in all states, by chunks. It
// returns the number of the first that arrived after it had begun.
func walk(ctx context.Context, n *catalog.Entity, from queue.SeqNo, fn func(context.Context, []queueserver.Delivery) error) (mark queue.SeqNo, err error) {
	for first := true; ; first = false {
		found, err := queueserver.Do(ctx, n.Shard, queueserver.Peek{Queue: n.QueueID(queueserver.Main), From: from, Max: Chunk, Chunk: true})
		if err != nil {
			return mark, err
		}
		if first {
			mark = found.Last + 1
		}
		for i := range found.Messages {
			found.Messages[i].Unload() // else they keep what the cache has dropped
		}
		if len(found.Messages) > 0 {
			if err := fn(ctx, found.Messages); err != nil {
				return mark, err
			}
		}
		if found.Next == 0 {
			return mark, nil
		}
		from = found.Next
	}
}

// evaluate classifies a stored message by a policy. It keeps nothing of its body: a chunk
// is hundreds of messages.
func evaluate(c *catalog.Classifier, d *queueserver.Delivery) (classifiedMessage, error) {
	defer d.Unload()
	m, err := d.Message()
	if err != nil {
		return classifiedMessage{}, err
	}
	v := c.Classify(m)
	return classifiedMessage{d.Delivery, queue.Classification{Level: queue.Level(v.Level), Class: queue.Class(v.Class), Key: v.Key}}, nil
}

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

// sort classifies a chunk. Messages are read outside of the shard; one that was removed or
// changed meanwhile is skipped. One that cannot be read must not delay the others: it
// keeps its level and loses its class, which is a number of the old policy.
func (s *sorter) sort(ctx context.Context, ds []queueserver.Delivery) error {
	var js []classifiedMessage
	scheduled := make(map[queue.SeqNo]bool)
	for i := range ds {
		scheduled[ds[i].Seq] = ds[i].State == queue.Scheduled
		j, err := evaluate(s.classifier, &ds[i])
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, catalog.ErrStopping):
			return err
		case err != nil:
			if errors.Is(err, catalog.ErrMessageNotFound) {
				s.renumbered = s.renumbered || ds[i].State == queue.Scheduled
			} else {
				if s.unread++; s.unread == 1 {
					s.err = fmt.Errorf("read message %d: %w", ds[i].Seq, err)
				}
			}
			was := ds[i].Delivery
			j = classifiedMessage{was, queue.Classification{Level: was.Level, Key: was.Key}}
		}
		if j.changes() {
			js = append(js, j)
		}
	}
	if len(js) == 0 {
		return nil
	}
	o := queueserver.Reclassify{ID: s.n.ID, Revision: s.classifier.Policy.Revision}
	for _, j := range js {
		o.Changes = append(o.Changes, queueserver.Reclassified{Seq: j.was.Seq, To: j.next})
	}
	done, err := queueserver.Do(ctx, s.n.Shard, o)
	s.keyless += done.Keyless
	s.renumbered = s.renumbered || slices.ContainsFunc(done.Missing, func(seq queue.SeqNo) bool { return scheduled[seq] })
	return err
}
