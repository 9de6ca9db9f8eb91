// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/jobs"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/shard"
)

// reclassChunk is how many messages are looked at between two operations of
// others.
const reclassChunk = 500

// reclassifier classifies anew what waits in queues whose policy has changed, one
// queue after the other. What it has to do is durable: a definition says by which
// revision its messages were classified.
type reclassifier struct {
	b   *Broker
	job *jobs.Handle

	mu      sync.Mutex
	waiting []*catalog.Entity                // guarded by mu; in the order they were added
	callers map[*catalog.Entity][]chan error // guarded by mu; who waits for the end of it
}

func newReclassifier(b *Broker) *reclassifier {
	r := &reclassifier{b: b, callers: make(map[*catalog.Entity][]chan error)}
	r.job = b.runner.Add(r)
	return r
}

// add has a queue classified anew.
func (r *reclassifier) add(n *catalog.Entity) {
	r.mu.Lock()
	r.waiting = append(r.waiting, n)
	r.mu.Unlock()
	r.job.Wake()
}

// wait returns when what waits in a queue is classified by its policy.
func (r *reclassifier) wait(ctx context.Context, n *catalog.Entity) error {
	done := make(chan error, 1)
	r.mu.Lock()
	if def := n.Definition(); def.Classified == def.PolicyRevision {
		r.mu.Unlock()
		return nil
	}
	r.callers[n] = append(r.callers[n], done)
	r.mu.Unlock()
	r.add(n) // once more, in case that it has failed before anybody asked
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Name implements jobs.Job.
func (r *reclassifier) Name() string { return "reclassify" }

// Run implements jobs.Job: it classifies the messages of one queue.
func (r *reclassifier) Run(ctx context.Context) (jobs.Next, error) {
	n := r.next()
	if n == nil {
		return jobs.Next{}, nil
	}
	err := r.b.reclassify(ctx, n)
	if errors.Is(err, shard.ErrSuperseded) {
		return jobs.Again(), nil // a newer policy is in line, with its callers
	}
	r.answer(n, err)
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrNotFound) {
		return jobs.Again(), nil
	}
	r.b.log.LogAttrs(ctx, slog.LevelError, "messages not classified by the new policy",
		slog.String("entity", n.Path), slog.Any("err", err))
	return jobs.Again(), err
}

func (r *reclassifier) next() *catalog.Entity {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return nil
	}
	n := r.waiting[0]
	r.waiting = r.waiting[1:]
	return n
}

// Finish implements jobs.Finisher: it answers everybody; what is left to do is found by
// the next process.
func (r *reclassifier) Finish(context.Context) {
	r.mu.Lock()
	all := r.callers
	r.callers = make(map[*catalog.Entity][]chan error)
	r.mu.Unlock()
	for _, callers := range all {
		for _, c := range callers {
			c <- ErrStopping
		}
	}
}

func (r *reclassifier) answer(n *catalog.Entity, err error) {
	r.mu.Lock()
	callers := r.callers[n]
	delete(r.callers, n)
	r.mu.Unlock()
	for _, c := range callers {
		c <- err
	}
}

// reclassify brings everything in a queue in line with its policy.
func (b *Broker) reclassify(ctx context.Context, n *catalog.Entity) error {
	def := n.Definition()
	if def.Classified == def.PolicyRevision {
		return nil
	}
	// Senders that loaded the old policy may still send messages. The shard knows
	// the last of them: what came since a pass began is examined in another one.
	s := sorter{b: b, n: n, classifier: def.Classifier}
	for mark, again := queue.SeqNo(0), true; again; {
		next, err := b.walk(ctx, n, mark, s.sort)
		if err != nil {
			return err
		}
		end, err := shard.Do(ctx, n.Shard, shard.EndReclassify{ID: n.ID, Revision: def.PolicyRevision, Examined: next})
		if err != nil {
			return err
		}
		mark, again = next, end.Again
	}
	if s.unread > 0 {
		b.log.LogAttrs(ctx, slog.LevelError, "messages that cannot be read keep their level and are in no class",
			slog.String("entity", n.Path), slog.Int("count", s.unread), slog.Any("err", s.err))
	}
	return b.MarkClassified(ctx, n, def.Classifier)
}

// classifiedMessage is a message and the class that a policy gives it.
type classifiedMessage struct {
	was  queue.Delivery
	next queue.Reclass
}

func (j classifiedMessage) changes() bool {
	return j.was.Level != j.next.Level || j.was.Class != j.next.Class || j.was.Key != j.next.Key
}

// walk shows every message from a number on, in all states, to fn, by chunks. It
// returns the number of the first that came after it had begun.
func (b *Broker) walk(ctx context.Context, n *catalog.Entity, from queue.SeqNo, fn func(context.Context, []Delivery) error) (mark queue.SeqNo, err error) {
	for first := true; ; first = false {
		found, err := shard.Do(ctx, n.Shard, shard.Peek{Queue: n.QueueID(shard.Main), From: from, Max: reclassChunk, Chunk: true})
		if err != nil {
			return mark, err
		}
		if first {
			mark = found.Last + 1
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

// evaluate classifies a stored message by a policy.
func evaluate(c *catalog.Classifier, d *Delivery) (classifiedMessage, error) {
	m, err := d.Message()
	if err != nil {
		return classifiedMessage{}, err
	}
	v := c.Classify(m)
	return classifiedMessage{d.Delivery, queue.Reclass{Level: queue.Level(v.Level), Class: queue.Class(v.Class), Key: v.Key}}, nil
}

// sorter classifies the messages of a queue by one policy.
type sorter struct {
	b          *Broker
	n          *catalog.Entity
	classifier *catalog.Classifier
	unread     int   // messages that could not be read
	err        error // of the first of them
}

// sort classifies a chunk. Messages are read outside of the shard; one that is gone
// by then, or has changed hands, is not looked for. One that cannot be read must not
// hold up the others: it keeps its level, and leaves its class, which is a number in
// a policy that no longer holds.
func (s *sorter) sort(ctx context.Context, ds []Delivery) error {
	var js []classifiedMessage
	for i := range ds {
		j, err := evaluate(s.classifier, &ds[i])
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrStopping):
			return err
		case err != nil:
			if !errors.Is(err, ErrMessageNotFound) {
				if s.unread++; s.unread == 1 {
					s.err = fmt.Errorf("read message %d: %w", ds[i].Seq, err)
				}
			}
			was := ds[i].Delivery
			j = classifiedMessage{was, queue.Reclass{Level: was.Level, Key: was.Key}}
		}
		if j.changes() {
			js = append(js, j)
		}
	}
	if len(js) == 0 {
		return nil
	}
	o := shard.Reclassify{ID: s.n.ID, Revision: s.classifier.Policy.Revision}
	for _, j := range js {
		o.Changes = append(o.Changes, shard.Reclassified{Seq: j.was.Seq, To: j.next})
	}
	_, err := shard.Do(ctx, s.n.Shard, o)
	return err
}

// Shift is how many messages would change from one class and level to another.
type Shift struct {
	From  Place `json:"from"`
	To    Place `json:"to"`
	Count int64 `json:"count"`
}

// Place is a class and a level that a message has.
type Place struct {
	Class string      `json:"class"` // empty is none
	Level queue.Level `json:"level"`
}

// DryRun is what a policy would do.
type DryRun struct {
	Entity  string `json:"entity"`
	Looked  int64  `json:"examined"` // messages looked at, in all states
	Changed int64  `json:"changed"`  // of those, whose class, level or key would change
	// Unread counts messages that cannot be read, and would be in no class.
	Unread int64 `json:"unread,omitzero"`
	// Shifts counts all messages by where they are and would be, the most first.
	Shifts       []Shift  `json:"shifts"`
	Changes      []string `json:"changes"` // of the policy itself
	Warnings     []string `json:"warnings"`
	Consequences []string `json:"consequences"`
}

// DryRun says what would become of the messages of a queue or subscription if it
// had another policy, and changes nothing.
func (b *Broker) DryRun(ctx context.Context, addr string, raw []byte) (DryRun, error) {
	p, err := catalog.ParsePolicy(raw)
	if err != nil {
		return DryRun{}, err
	}
	n, err := b.PolicyEntity(addr)
	if err != nil {
		return DryRun{}, err
	}
	def := n.Definition()
	old, next := def.Classifier.Policy, catalog.NewClassifier(p)
	r := DryRun{Entity: n.Path, Changes: policy.Diff(old, p)}
	r.Warnings, r.Consequences = def.Advice(p)
	counts := make(map[[2]Place]int64)
	_, err = b.walk(ctx, n, 0, func(ctx context.Context, ds []Delivery) error {
		for i := range ds {
			j, err := evaluate(next, &ds[i])
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.Is(err, ErrStopping):
				return err
			case errors.Is(err, ErrMessageNotFound):
				continue
			case err != nil:
				r.Unread++
				continue
			}
			r.Looked++
			if j.changes() {
				r.Changed++
			}
			counts[[2]Place{
				{old.ClassName(uint8(j.was.Class)), j.was.Level},
				{p.ClassName(uint8(j.next.Class)), j.next.Level},
			}]++
		}
		return nil
	})
	r.Shifts = shifts(counts)
	return r, err
}

func shifts(counts map[[2]Place]int64) []Shift {
	all := []Shift{}
	for at, n := range counts {
		all = append(all, Shift{at[0], at[1], n})
	}
	slices.SortFunc(all, func(x, y Shift) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(y.From.Level, x.From.Level), cmp.Compare(y.To.Level, x.To.Level),
			cmp.Compare(x.From.Class, y.From.Class), cmp.Compare(x.To.Class, y.To.Class))
	})
	return all
}

// SetPolicy gives a queue or subscription another policy; null takes it away. The
// new one holds for the next message at once. What waits is classified anew and put
// into its order, each message keeping its age; SetPolicy returns when that is done,
// and if ctx ends before, it goes on.
func (b *Broker) SetPolicy(ctx context.Context, addr string, raw []byte) (PolicyState, error) {
	n, err := b.ReplacePolicy(ctx, addr, raw)
	if err != nil {
		return PolicyState{}, err
	}
	if err := b.reclassifier.wait(ctx, n); err != nil {
		return PolicyState{}, err
	}
	if _, err := shard.Do(ctx, n.Shard, shard.AwaitOrder{ID: n.ID}); err != nil {
		return PolicyState{}, err
	}
	return catalog.PolicyStateOf(n, n.Definition()), nil
}
