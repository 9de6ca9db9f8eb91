// SPDX-License-Identifier: Apache-2.0

package redrive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

const (
	// Window is how many dead letters are looked at at a time.
	Window = 128
	// batchBytes is about how many bytes of them are moved at a time, or one that is larger.
	batchBytes = 4 << 20
	// copies is how often a body is there while it is moved: as it was stored, and as it is
	// stored now.
	copies = 2
)

// Request says which dead letters to move. The zero value is all of them, back to their
// queue.
type Request struct {
	// To is the queue or topic to move them to; empty is the queue, subscription or topic
	// whose dead letters they are. A topic publishes them.
	To string
	// From is the lowest sequence number to examine.
	From queue.SeqNo
	// Until is the highest sequence number to examine; zero is the highest when the redrive
	// begins. Messages that are dead-lettered while it runs are not examined: otherwise it
	// would not end while they fail again.
	Until queue.SeqNo
	// Max is how many to move at most; zero is no limit.
	Max int
	// Match chooses among them; nil matches all. It is called on the goroutine of the caller.
	Match func(*queueserver.Delivery, *message.Message) bool
}

// Broker is what a redrive needs of the broker.
type Broker interface {
	Find(addr string) (*catalog.Entity, entity.SubQueue, error)
	Writable(addr string) (*catalog.Entity, error)
	Peek(ctx context.Context, addr string, from queue.SeqNo, max int, session *string) ([]queueserver.Delivery, error)
	Send(n *catalog.Entity, batch []*message.Message, o catalog.SendOptions, done func([]queue.SeqNo, error))
	ForProcessor(n *catalog.Entity) (done func())
}

// Result says what a redrive did.
type Result struct {
	Moved int `json:"moved"`
	// Left is how many were examined and stay: no match, locked, or unreadable.
	Left int `json:"skipped"`
	// Next is where to continue when Max was reached, and Until where to stop; zero is that
	// nothing is left.
	Next  queue.SeqNo `json:"next,omitzero"`
	Until queue.SeqNo `json:"until,omitzero"`
}

// Run moves dead letters of an entity. In the same shard a move is one group of records;
// between shards a crash may leave a message in both, never in none. Messages that were
// moved before an error stay moved.
func Run(ctx context.Context, b Broker, log *slog.Logger, addr string, r Request) (Result, error) {
	n, sub, err := b.Find(addr)
	if err != nil {
		return Result{}, err
	}
	part := queueserver.SubQueue(sub)
	if part == queueserver.Main {
		part = queueserver.DeadLetter
	}
	source := entity.Path{Entity: n.Path, SubQueue: entity.SubQueue(part)}.String()
	d := operation{Request: r, b: b, log: log, n: n, part: part}
	if r.To != "" {
		if d.target, err = b.Writable(r.To); err != nil {
			return Result{}, err
		}
	}
	if d.Until == 0 {
		if d.Until, err = d.last(ctx); err != nil {
			return Result{}, err
		}
	}
	for from := r.From; from <= d.Until; {
		window := Window
		if r.Max > 0 {
			window = min(window, r.Max-d.done.Moved)
		}
		if window == 0 {
			d.done.Next, d.done.Until = from, d.Until
			return d.done, nil
		}
		if err := catalog.Guarded(ctx); err != nil {
			return d.done, err
		}
		ds, err := b.Peek(ctx, source, from, window, nil)
		ds = slices.DeleteFunc(ds, func(x queueserver.Delivery) bool { return x.Seq > d.Until })
		if err != nil || len(ds) == 0 {
			return d.done, err
		}
		from = ds[len(ds)-1].Seq + 1
		for i := range ds {
			ds[i].Unload() // else they keep what the cache has dropped
		}
		for len(ds) > 0 {
			n, size := batch(ds)
			if err := catalog.Charge(ctx, copies*size); err != nil {
				return d.done, err
			}
			if err := d.move(ctx, ds[:n]); err != nil {
				return d.done, err
			}
			clear(ds[:n])
			ds = ds[n:]
		}
	}
	return d.done, nil
}

// batch returns how many of the first dead letters are moved together, and the size of their
// bodies.
func batch(ds []queueserver.Delivery) (n int, size int64) {
	for n < len(ds) {
		next := ds[n].Size()
		if n > 0 && size+next > batchBytes {
			break
		}
		n, size = n+1, size+next
	}
	return n, size
}

// last returns the highest sequence number of a dead letter so far.
func (r *operation) last(ctx context.Context) (queue.SeqNo, error) {
	return queueserver.Do(ctx, r.n.Shard, queueserver.LastNumber{Queue: r.n.QueueID(r.part)})
}

// operation is a redrive in progress.
type operation struct {
	Request
	b      Broker
	log    *slog.Logger
	n      *catalog.Entity
	part   queueserver.SubQueue
	target *catalog.Entity // nil is their own queue
	done   Result
}

// chosen is a dead letter that is to be moved.
type chosen struct {
	queueserver.Delivery
	msg *message.Message
}

// move moves those of ds that match, and returns when all moves are durable.
func (r *operation) move(ctx context.Context, ds []queueserver.Delivery) error {
	var wanted []chosen
	for i := range ds {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx) // ends with the caller
		}
		m, err := ds[i].Message()
		switch {
		case errors.Is(err, queue.ErrNotFound):
			continue // settled meanwhile
		case err != nil:
			r.done.Left++
			r.log.LogAttrs(ctx, slog.LevelError, "dead letter cannot be read and stays",
				slog.String("entity", r.n.Path), slog.Uint64("seq", uint64(ds[i].Seq)), slog.Any("err", err))
		case ds[i].State == queue.Locked || ds[i].Damaged() || r.Match != nil && !r.Match(&ds[i], m):
			r.done.Left++
		default:
			wanted = append(wanted, chosen{ds[i], m})
		}
	}
	if err := r.lock(ctx, wanted); err != nil {
		return err
	}
	results := make(chan error, len(wanted))
	sent := 0
	for i := range wanted {
		if wanted[i].Token == (queue.Token{}) {
			r.done.Left++ // it was locked or settled meanwhile
			continue
		}
		sent++
		done := func(err error) { results <- err }
		if ctx.Err() != nil { // it ends with the caller: each may take long
			r.release(&wanted[i], context.Cause(ctx), done)
			continue
		}
		r.send(&wanted[i], done)
	}
	var errs []error
	for range sent {
		if err := <-results; err != nil {
			r.done.Left++
			errs = append(errs, err)
			continue
		}
		r.done.Moved++
	}
	if len(errs) > 0 {
		return fmt.Errorf("redrive to %q: %w", r.destination(), errs[0]) // the others have the same text
	}
	return nil
}

func (r *operation) destination() string {
	if r.target != nil {
		return r.target.Path
	}
	return r.n.Path
}

// lock locks the messages, so that they are not received while they move. One that cannot
// be locked has no token.
func (r *operation) lock(ctx context.Context, wanted []chosen) error {
	o := queueserver.LockMessages{Queue: r.n.QueueID(r.part)}
	for i := range wanted {
		o.Seqs = append(o.Seqs, wanted[i].Seq)
	}
	tokens, err := queueserver.Do(ctx, r.n.Shard, o)
	if err != nil {
		// It may have been done, though nobody waited.
		if tokens = slices.DeleteFunc(tokens, func(t queue.Token) bool { return t == queue.Token{} }); len(tokens) > 0 {
			r.n.Settle(r.part, tokens, catalog.Outcome{Disposition: catalog.Release}, nil)
		}
		return err
	}
	for i := range wanted {
		wanted[i].Token = tokens[i]
	}
	return nil
}

// release unlocks a message that was not moved, because of err.
func (r *operation) release(c *chosen, err error, done func(error)) {
	r.n.Settle(r.part, []queue.Token{c.Token}, catalog.Outcome{Disposition: catalog.Release}, func([]error) { done(err) })
}

// send moves one message and releases it if that fails. If rules or conditions are expensive, it
// waits for a processor.
func (r *operation) send(c *chosen, done func(error)) {
	token := []queue.Token{c.Token}
	finish := func(err error) {
		if err == nil {
			done(nil)
			return
		}
		r.release(c, err, done)
	}
	edit := dropDeadLetterReason
	if c.Saved != (queue.Ref{}) { // by those who looked at the dead letter
		edit.Properties = append(slices.Clip(edit.Properties), message.Change{Name: message.PropertyState, Remove: true})
	}
	m, err := message.ParseStored(c.msg.Edit(edit))
	if err != nil {
		finish(err)
		return
	}
	here := queueserver.Locked{ID: r.n.ID, SubQueue: r.part, Token: c.Token}
	switch {
	case r.target == nil:
		if r.n.Expensive() {
			defer r.b.ForProcessor(r.n)()
		}
		r.back(c, m, here, finish)
	case r.target.Shard == r.n.Shard:
		r.b.Send(r.target, []*message.Message{m}, catalog.SendOptions{Settle: here, Held: true, Waits: true}, func(_ []queue.SeqNo, err error) { finish(err) })
	default:
		r.b.Send(r.target, []*message.Message{m}, catalog.SendOptions{Held: true, Waits: true}, func(_ []queue.SeqNo, err error) {
			if err != nil {
				finish(err)
				return
			}
			r.n.Settle(r.part, token, catalog.Outcome{Disposition: catalog.Complete}, func(errs []error) { done(errors.Join(errs...)) })
		})
	}
}

// back moves a message to its own queue. It is not a duplicate of itself, is not scheduled
// again, and its age starts again. It is classified by the present policy: its class as a
// dead letter is a number of an older one.
func (r *operation) back(c *chosen, m *message.Message, here queueserver.Locked, done func(error)) {
	def := r.n.Definition()
	a := def.Arrival(m, 0)
	a.Origin, a.MessageID, a.NotBefore, a.OrderTime = c.Origin, "", time.Time{}, time.Time{}
	err := r.n.Shard.Send(&queueserver.Send{
		Bodies: []*message.Message{m},
		Copies: []queueserver.Copy{{ID: r.n.ID, SubQueue: queueserver.Main, Arrival: a, Revision: def.PolicyRevision}},
		Settle: here,
		Moved:  true,
		Done: func(_ []queue.SeqNo, err error) {
			if errors.Is(err, queueserver.ErrSuperseded) {
				if !r.n.Expensive() { // this is the goroutine of the shard
					r.back(c, m, here, done) // by the new policy
					return
				}
				err = queueserver.ErrBusy
			}
			done(catalog.Translate(err))
		},
	})
	if err != nil {
		done(err)
	}
}

// dropDeadLetterReason removes the properties of a dead letter from a message.
var dropDeadLetterReason = message.Edit{
	Properties: []message.Change{
		{Name: message.PropertyDeadLetterReason, Remove: true},
		{Name: message.PropertyDeadLetterDescription, Remove: true},
	},
	Annotations: []message.Change{{Name: message.AnnotationDeadLetterSource, Remove: true}},
}
