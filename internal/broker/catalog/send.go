// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// sendRequest is a batch that is being sent to a shard. There is one for every message,
// so they are recycled. A request belongs to the shard from when it was sent until the
// shard calls Done, which is its last use.
type sendRequest struct {
	queueserver.Send
	c    *Catalog
	n    *Entity
	o    SendOptions
	done func([]queue.SeqNo, error)
	out  fanOut

	// The memory for a single message.
	body [1]*message.Message
	copy [1]queueserver.Copy

	charge int64 // to o.Unsynced
}

// newSend returns a request for a batch, which stays the caller's.
func (c *Catalog) newSend(batch []*message.Message, done func([]queue.SeqNo, error)) *sendRequest {
	p, ok := c.sends.Get().(*sendRequest)
	if !ok {
		p = &sendRequest{c: c}
		p.Done = p.answer
	}
	p.done = done
	p.Bodies = append(p.body[:0], batch...)
	p.Copies = p.copy[:0]
	if len(batch) > 1 {
		p.Copies = make([]queueserver.Copy, 0, len(batch))
	}
	return p
}

// answer reports the result to the sender. A batch that was classified by a policy which
// was replaced meanwhile is sent once more: by now the definitions have the new one. It is called on
// the goroutine of the shard, for which others wait, so that one whose conditions take long is
// refused: its sender tries again.
func (p *sendRequest) answer(seqs []queue.SeqNo, err error) {
	if p.charge > 0 {
		p.o.Unsynced.Release(p.charge)
		p.charge = 0
	}
	if errors.Is(err, queueserver.ErrSuperseded) {
		n, o, done, batch := p.n, p.o, p.done, slices.Clone(p.Bodies[:p.out.source])
		if o.again = true; p.out.steps <= stepsAgain && !n.Expensive() {
			p.free()
			p.c.Send(n, batch, o, done)
			return
		}
		err = ErrBusy
	}
	p.done(seqs, Translate(err))
	p.free()
}

// free recycles the request.
func (p *sendRequest) free() {
	p.Send = queueserver.Send{Done: p.Done}
	p.n, p.o, p.done, p.body, p.copy = nil, SendOptions{}, nil, [1]*message.Message{}, [1]queueserver.Copy{}
	p.c.sends.Put(p)
}

// stepsAgain is how many steps a batch may take that is sent once more on the goroutine of its
// shard: about a millisecond.
const stepsAgain = 100_000

// largestMessage fits into a segment of the journal, with space for the properties that
// the broker writes into a dead letter.
const largestMessage = 60 << 20

// MaxMessage is the size in bytes of the largest message that the entity accepts.
func (d *Definition) MaxMessage() int64 {
	return min(d.Properties.MaxMessageSizeInKilobytes<<10, largestMessage)
}

// SendOptions describe the origin of the messages of a batch.
type SendOptions struct {
	// Settle, if not zero, is the message of the same shard that the batch
	// replaces.
	Settle queueserver.Locked
	// Hops is how often the messages were forwarded before.
	Hops uint8
	// Origin is the first sequence number of a forwarded message; zero is none.
	Origin queue.SeqNo
	// Held says that the messages were stored before, are due, and are no duplicates: a
	// queue accepts them at once, and a topic publishes them at once.
	Held bool
	// Unsynced, unless it is nil, is charged with what the batch takes beyond its bytes and
	// messages until it is durable or rejected: more copies, and bodies that rules made. It is
	// charged whether it has space or not, as the sender waits for space before the next batch.
	Unsynced *budget.Account
	// Waits says that the caller may wait for a processor, if rules or conditions are expensive.
	Waits bool
	// Turn, unless it is nil, is a turn for a processor that the caller has until Send returns.
	Turn *Turn

	again bool // it is on the goroutine of the shard; see sendRequest.answer
}

// copyCost is what a copy is charged with, beside one of each message. It takes a third of that
// in memory, but it is work for the shard as well, behind which others wait.
const copyCost = 768

// takeCharge charges what the request takes beyond its messages and their bytes.
func (p *sendRequest) takeCharge() {
	if p.o.Unsynced == nil {
		return
	}
	p.charge = copyCost*int64(max(len(p.Copies)-p.out.source, 0)) + 2*p.out.added
	if p.charge > 0 {
		p.o.Unsynced.Charge(p.charge)
	}
}

// Send stores a batch in a queue, or publishes it to a topic. It blocks only as o.Waits says; done
// is called once, when the batch is durable or rejected.
func (c *Catalog) Send(n *Entity, batch []*message.Message, o SendOptions, done func([]queue.SeqNo, error)) {
	def := n.Definition()
	now := c.clock.Now()
	n.Touch(now)
	err := def.sendable()
	if own := o.Settle != (queueserver.Locked{}) && o.Settle.ID == n.ID; err == nil && !own {
		err = def.fits(batch) // messages that a topic stored were checked when they arrived
	}
	if err != nil {
		done(nil, err)
		return
	}
	p := c.newSend(batch, done)
	p.n, p.o = n, o
	p.Settle, p.Moved = o.Settle, o.Settle != (queueserver.Locked{}) || o.Held || o.Hops > 0
	p.out = fanOut{source: len(batch), most: max(limits.CopyBytes, def.MaxMessage()+limits.Properties)}
	if err := p.choose(def, now); err != nil {
		p.answer(nil, err)
		return
	}
	p.takeCharge()
	if err := n.Shard.Send(&p.Send); err != nil {
		p.answer(nil, err)
	}
}

// choose finds out where each message of the batch goes.
func (p *sendRequest) choose(def *Definition, now time.Time) error {
	turn := evaluation{c: p.c, n: p.n, waits: p.o.Waits && !p.o.again}
	if turn.waits && p.o.Turn != nil {
		turn.turn = p.o.Turn
	} else {
		defer turn.end()
	}
	p.o.Turn = nil // it is the caller's
	for i := range p.out.source {
		turn.next(p.out.steps)
		if err := p.chooseOne(def, i, now); err != nil {
			return err
		}
		if err := p.out.check(len(p.Copies)); err != nil {
			return err
		}
		if p.o.again && p.out.steps > stepsAgain {
			return ErrBusy
		}
	}
	return nil
}

// chooseOne adds the copies of message i of the batch.
func (p *sendRequest) chooseOne(def *Definition, i int, now time.Time) error {
	m := p.Bodies[i]
	if p.n.Kind == KindTopic && (p.o.Held || !def.keeps(m, now)) {
		session, _ := m.SessionID()
		if err := CheckName("session id", session); err != nil {
			return err
		}
		p.c.route(p.n, p, i, now, &p.o)
		return nil
	}
	a, steps := def.arrival(m, p.o.Hops)
	p.out.steps += steps
	if err := checkNames(&a); err != nil {
		return err
	}
	a.Origin = p.o.Origin
	if p.o.Held {
		a.MessageID, a.NotBefore = "", time.Time{}
	}
	p.Copies = append(p.Copies, queueserver.Copy{ID: p.n.ID, Body: i, Arrival: a, Numbered: true, Revision: def.PolicyRevision})
	return nil
}

// sendable reports whether the entity accepts messages at present.
func (d *Definition) sendable() error {
	if d.Paused.Sending || !d.Properties.Status.CanSend() {
		return fmt.Errorf("%w: sending to %q is disabled", ErrDisabled, d.Properties.Name)
	}
	return nil
}

// fits reports whether no message of the batch is too large for the entity.
func (d *Definition) fits(batch []*message.Message) error {
	limit := d.MaxMessage()
	for _, m := range batch {
		if int64(m.Size()) > limit {
			return fmt.Errorf("%w: %d bytes, %q takes up to %d", ErrTooLarge, m.Size(), d.Properties.Name, limit)
		}
	}
	return nil
}

// keeps reports whether a topic has to store a message before it is routed: one that is
// scheduled, or may be a duplicate.
func (d *Definition) keeps(m *message.Message, now time.Time) bool {
	if d.Properties.RequiresDuplicateDetection {
		return true
	}
	at, ok := m.ScheduledEnqueueTime()
	return ok && at.After(now)
}

// Arrival returns what a queue needs of a message.
func (d *Definition) Arrival(m *message.Message, hops uint8) queue.Arrival {
	a, _ := d.arrival(m, hops)
	return a
}

// arrival is Arrival, which also returns about how many steps the conditions of the policy took.
func (d *Definition) arrival(m *message.Message, hops uint8) (queue.Arrival, int) {
	v, steps := d.Classifier.classify(m)
	if hops == 0 && d.Classifier.Policy.UnknownPriority(m, v) {
		d.Classifier.Unknown.Add(1)
	}
	a := queue.Arrival{
		Level: queue.Level(v.Level), Class: queue.Class(v.Class), Key: v.Key,
		TTL: Lifetime(m), Hops: hops,
	}
	a.Session, a.InSession = m.SessionID()
	if inherited, ok := m.Inherited(); ok && d.Classifier.Policy.LevelOrder != ordering.Lifo { // under lifo its own arrival time counts
		a.OrderTime = inherited.Since
	}
	if d.Properties.RequiresDuplicateDetection {
		a.MessageID = m.MessageIDString()
	}
	if at, ok := m.ScheduledEnqueueTime(); ok {
		a.NotBefore = at
	}
	return a, steps
}

// Lifetime returns the time to live that a message has; zero is that of its queue. A time
// that the header cannot represent is in two properties.
func Lifetime(m *message.Message) time.Duration {
	if from := m.CreationTime(); !from.IsZero() {
		if to := m.AbsoluteExpiry(); to.After(from) {
			return to.Sub(from)
		}
	}
	if h := m.Header(); h.TTLSet {
		return h.TTL
	}
	return 0
}

// Edited returns a changed copy of a message.
func Edited(m *message.Message, e message.Edit) *message.Message {
	out, err := message.ParseStored(m.Edit(e))
	if err != nil {
		// An edit of a message that parsed parses: see FuzzEdit of package message.
		panic(fmt.Sprintf("catalog: edited message: %v", err))
	}
	return out
}
