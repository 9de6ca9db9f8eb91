// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"cmp"
	"errors"
	"slices"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// Send stores messages, all of them or none, in one or more queues of the shard.
type Send struct {
	// Bodies are the distinct messages to store.
	Bodies []*message.Message
	// Copies say which queue gets which body.
	Copies []Copy
	// Published is how many messages Topic counts. An Origin in Copies is the
	// place of the message among them, from 1; the topic makes it a number, unless
	// the copy is Numbered.
	// Copies of what is published, for queues that were dropped after the sender
	// had chosen them, are left out; without the topic nothing is stored.
	Topic     ID
	Published int
	// Settle, if not zero, completes a message of the shard in the same group:
	// it moves instead of being copied.
	Settle Locked
	// Moved says that the messages are stored already, and leave the place where they
	// are: they are not refused because there is no memory for more messages, but for sessions and
	// fair keys that are new. As copies for many queues they may exceed it by an eighth; those
	// from another shard are refused as others are.
	Moved bool
	// Done gets the numbers, one for each copy that was not left out, when all is
	// durable. A duplicate has number zero. It runs on the shard's goroutine, and seqs
	// is valid during the call.
	Done func(seqs []queue.SeqNo, err error)

	// Set by the shard: itself, the numbers for Done, and space for one.
	shard *Shard
	seqs  []queue.SeqNo
	one   [1]queue.SeqNo
}

// Copy is one message in one queue.
type Copy struct {
	ID       ID
	SubQueue SubQueue
	Body     int // index into Send.Bodies
	Arrival  queue.Arrival
	// Numbered says that the Origin is none, or a number already: that of a message
	// which was forwarded.
	Numbered bool
	// Revision is that of the policy by which the message was classified. While the
	// messages of the queue are being reclassified by a later one, it is stored and
	// reclassified with them; after that the answer is ErrSuperseded.
	Revision int64
}

// Locked names a message that is locked.
type Locked struct {
	ID       ID
	SubQueue SubQueue
	Token    queue.Token
}

// Send posts a Send; it never blocks. ErrBusy means that the mailbox is full.
func (s *Shard) Send(send *Send) error {
	send.shard = s
	return s.Submit((*sending)(send))
}

type sending Send

// Fail implements [engine.Command].
func (o *sending) Fail(err error) { o.Done(nil, err) }

// Refusable implements [engine.Refusable].
func (o *sending) Refusable() bool { return true }

// Apply implements [engine.Command].
func (o *sending) Apply(tx *engine.Tx) {
	s := o.shard
	if s.tx.StillFull() {
		o.Done(nil, ErrDiskFull)
		return
	}
	if tx.Delayed() { // they came first
		o.delay(tx)
		return
	}
	err := o.store(s)
	switch {
	case err == nil:
		s.tx.Reply(o, nil)
	case errors.Is(err, journal.ErrBusy):
		o.delay(tx)
	default:
		o.Done(nil, err)
	}
}

// delay keeps a send for which the journal has no space at the moment.
func (o *sending) delay(tx *engine.Tx) {
	if !tx.Delay(o) {
		o.Done(nil, ErrBusy)
	}
}

// Reply implements [engine.Replier].
func (o *sending) Reply(err error) { o.Done(o.seqs, err) }

// scratch is what a send needs while it runs, kept for the next.
type scratch struct {
	queues   []*hostedQueue  // of each copy
	arrivals []queue.Arrival // for one queue, or while they are admitted for all
	admitted []admission     // by observers
	growths  []growth        // of each queue
	uses     []int           // copies of each body
	raws     [][]byte        // bodies with a use
	refs     []queue.Ref     // of each body
}

// sized returns s with n elements, all of them zero.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// store does the work. An error leaves nothing but unreferenced bodies: the
// queues are asked, and the bodies appended, before the first of them changes.
func (o *sending) store(s *Shard) error {
	if o.Published > 0 {
		if err := o.leaveOut(s); err != nil {
			return err
		}
		// What goes to one queue is admitted and stored together.
		slices.SortStableFunc(o.Copies, func(a, b Copy) int {
			return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.SubQueue, b.SubQueue))
		})
	}
	defer s.sending.forget()
	if err := o.fits(s); err != nil {
		return err
	}
	queues, err := o.admit(s)
	if err != nil {
		s.decline()
		return err
	}
	refs, err := o.keep(s)
	if err != nil {
		s.decline()
		return err
	}
	s.evict()
	for i := range o.Copies {
		o.Copies[i].Arrival.Body = refs[o.Copies[i].Body]
	}
	if o.count(s); o.Published == 0 && len(queues) > 0 && queues[0].part == Main {
		queues[0].entity.used = s.tx.Now()
	}
	if o.seqs = o.one[:]; len(o.Copies) != 1 {
		o.seqs = make([]queue.SeqNo, len(o.Copies))
	}
	for from := 0; from < len(o.Copies); {
		to := from + 1
		for to < len(o.Copies) && queues[to] == queues[from] {
			to++
		}
		if err := s.enqueue(queues[from], o.Copies[from:to], o.seqs[from:to]); err != nil {
			s.tx.Stop(err) // admit accepted it: the machine contradicts itself
			return err
		}
		for i := from; i < to; i++ {
			if queues[i].outdated(&o.Copies[i]) {
				queues[i].lastOutdated = max(queues[i].lastOutdated, o.seqs[i])
			}
		}
		from = to
	}
	if o.Settle != (Locked{}) {
		s.settleMoved(o.Settle)
	}
	return nil
}

// fits refuses what would not fit into one group, before anything has changed, and
// ensures that the rest fits into the open group.
func (o *sending) fits(s *Shard) error {
	const (
		perCopy  = 96  // whatever its names
		perQueue = 128 // for the records of its copies: there may be another about their ages
	)
	size, grouped, due := 0, 0, 0
	for i := range o.Copies {
		c := &o.Copies[i]
		size += perCopy + len(c.Arrival.Session) + len(c.Arrival.Key)
		if c.Arrival.InSession || c.Arrival.Key != "" {
			grouped++
		}
		if hq, err := s.hostedQueue(c.ID, c.SubQueue); err == nil {
			due += hq.q.Due(&c.Arrival)
		}
		if i == 0 || c.ID != o.Copies[i-1].ID || c.SubQueue != o.Copies[i-1].SubQueue {
			size += perQueue
		}
	}
	const perGroup = 256 // a session and a fair key have a place of their own in a snapshot
	return s.tx.Reserve(engine.Needs{Records: size, Items: len(o.Copies), Due: due, Snapshot: size + size/2 + perGroup*grouped})
}

// leaveOut removes the copies for queues that were dropped. The sender chooses the
// subscriptions before the shard applies the send. One that is dropped in between gets no
// copy, and must not keep the others from theirs.
func (o *sending) leaveOut(s *Shard) error {
	if _, ok := s.entities[o.Topic]; !ok {
		return ErrNoEntity
	}
	o.Copies = slices.DeleteFunc(o.Copies, func(c Copy) bool {
		_, ok := s.entities[c.ID]
		return !ok
	})
	return nil
}

// keep appends the bodies that some queue takes and returns where each one is,
// valid until the next send.
func (o *sending) keep(s *Shard) ([]queue.Ref, error) {
	scratch := &s.sending
	uses := sized(scratch.uses, len(o.Bodies))
	scratch.uses = uses
	for i := range o.Copies {
		uses[o.Copies[i].Body]++
	}
	raws := scratch.raws[:0]
	for i, m := range o.Bodies {
		if uses[i] > 0 {
			raws = append(raws, m.Bytes())
		}
	}
	scratch.raws = raws
	defer clear(raws)
	refs := sized(scratch.refs, len(o.Bodies))
	scratch.refs = refs
	if len(raws) == 0 {
		return refs, nil
	}
	if err := s.tx.Store(journal.Ordinary, raws, refs[:len(raws)]); err != nil {
		return nil, err
	}
	// Spread the references out to the bodies they belong to, from the end.
	for i, n := len(o.Bodies)-1, len(raws); i >= 0; i-- {
		if uses[i] == 0 {
			refs[i] = queue.Ref{}
			continue
		}
		n--
		refs[i] = refs[n]
		s.cache.Put(refs[i], o.Bodies[i], uses[i])
	}
	return refs, nil
}

// forget clears the arrivals that observers have decided about, and the queues.
func (x *scratch) forget() {
	clear(x.queues) // one that is deleted must leave memory
	clear(x.arrivals)
	x.arrivals = x.arrivals[:0]
	clear(x.admitted)
	x.admitted = x.admitted[:0]
	clear(x.growths)
	x.growths = x.growths[:0]
}

// admit finds the queues, which are valid until the next send, and asks each
// whether it takes what is meant for it.
func (o *sending) admit(s *Shard) ([]*hostedQueue, error) {
	queues := sized(s.sending.queues, len(o.Copies))
	s.sending.queues = queues
	s.sending.arrivals = sized(s.sending.arrivals, len(o.Copies))
	arrivals := s.sending.arrivals[:0] // one piece for each queue
	for i := range o.Copies {
		hq, err := s.hostedQueue(o.Copies[i].ID, o.Copies[i].SubQueue)
		if err != nil {
			return nil, err
		}
		queues[i] = hq
		a := o.Copies[i].Arrival
		a.Body.Size = uint32(o.Bodies[o.Copies[i].Body].Size())
		arrivals = append(arrivals, a)
		if hq.outdated(&o.Copies[i]) && hq.classified == hq.monitor.Revision() {
			return nil, ErrSuperseded
		}
		if i+1 == len(o.Copies) || o.Copies[i+1].ID != o.Copies[i].ID || o.Copies[i+1].SubQueue != o.Copies[i].SubQueue {
			s.weighLater(hq)
			fresh, err := hq.q.Admit(s.tx.Now(), arrivals)
			if err != nil {
				return nil, err
			}
			if hq.part != Main && !hq.takes(fresh) {
				return nil, queue.ErrFull
			}
			if err := s.ask(hq, fresh); err != nil {
				return nil, err
			}
			s.sending.growths = append(s.sending.growths, growth{queue: hq, as: fresh})
			arrivals = arrivals[len(arrivals):]
		}
	}
	return queues, o.claim(s)
}

// takes reports whether dead letters that are sent fit into the size limit of the
// entity. It does not apply to messages that become dead letters in the queue.
func (hq *hostedQueue) takes(as []queue.Arrival) bool {
	limit := hq.entity.parts[Main].q.Config().MaxBytes
	size := hq.q.Footprint()
	for i := range as {
		size += int64(as[i].Body.Size) + queue.MessageOverhead
	}
	return limit == 0 || size <= limit
}

// enqueue puts copies that go to the same queue there with one record.
func (s *Shard) enqueue(hq *hostedQueue, copies []Copy, seqs []queue.SeqNo) error {
	arrivals := s.sending.arrivals[:0]
	for i := range copies {
		arrivals = append(arrivals, copies[i].Arrival)
	}
	if err := hq.q.Enqueue(s.tx.Now(), arrivals, seqs, s.out(hq)); err != nil {
		return err
	}
	if hq.observer != nil {
		hq.observer.Arrived(s.tx.Now(), stored(arrivals, seqs))
	}
	for _, seq := range seqs {
		s.noteAssigned(hq, seq)
	}
	s.collectEffects(hq)
	return nil
}

// stored moves the arrivals that got a number to the front, and returns them.
func stored(as []queue.Arrival, seqs []queue.SeqNo) []queue.Arrival {
	n := 0
	for i, seq := range seqs {
		if seq == 0 {
			continue
		}
		if n < i {
			as[n] = as[i]
		}
		n++
	}
	return as[:n]
}

// count numbers what a topic publishes: each copy carries the number that the
// message has in the topic.
func (o *sending) count(s *Shard) {
	if o.Published == 0 {
		return
	}
	e, ok := s.entities[o.Topic]
	if !ok {
		return
	}
	for i := range o.Copies {
		if c := &o.Copies[i]; !c.Numbered {
			c.Arrival.Origin += queue.SeqNo(e.Published)
		}
	}
	e.used = s.tx.Now()
	e.Published += uint64(o.Published)
	if !e.counted {
		e.counted = true
		s.touched = append(s.touched, e)
		s.tx.MustCommit()
	}
}

// recordPublished writes down how many messages the topics of the step have
// seen.
func (s *Shard) recordPublished() {
	for _, e := range s.touched {
		e.counted = false
		s.record(kindPublished, e.ID)
		s.eff.Uint(e.Published)
		s.eff.End()
	}
	clear(s.touched)
	s.touched = s.touched[:0]
}

// settleMoved completes a message whose copy the same group has stored. A lock that has
// expired meanwhile leaves a duplicate, which at-least-once allows.
func (s *Shard) settleMoved(l Locked) {
	hq, err := s.hostedQueue(l.ID, l.SubQueue)
	if err != nil {
		return
	}
	if _, err := hq.q.Complete(s.tx.Now(), l.Token, s.out(hq)); err == nil {
		s.collectEffects(hq)
	}
}
