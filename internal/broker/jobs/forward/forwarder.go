// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/catalog/errtext"
	"github.com/triagemq/triagemq/internal/broker/jobs"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

const (
	maxHops = 4

	// How long a forwarder waits for a target that accepts nothing before it tries again:
	// the first time, and at most.
	minMoveRetry = 100 * time.Millisecond
	maxMoveRetry = 5 * time.Second
	// throttleRetry is the longest time that a forwarder has a message of a throttled class
	// locked; no lock is shorter than five seconds.
	throttleRetry = time.Second
)

// Reasons for transfer dead letters.
const (
	reasonHops    = "MaxTransferHopCountExceeded"
	reasonForward = "ForwardingFailed"
)

// forwarder moves messages out of one queue: it forwards them, or publishes what a topic
// has stored. It is a Sink and a job, which moves one message after the other, so that
// messages leave in the order in which they were taken.
//
// A message that can never be forwarded becomes a transfer dead letter. If the target
// accepts nothing at present (it is paused, disabled, full, or the disk is), all messages
// are released, and the forwarder waits. It tries a single message after a delay, or when
// the target's definition changes, and doubles the number after each success. So an
// operator can pause any part of a chain, and the messages wait before it.
type forwarder struct {
	ms  *Forwarders
	job *jobs.Handle
	source

	mu      sync.Mutex
	id      queueserver.ConsumerID // guarded by mu; zero until attached
	inbox   []transfer             // guarded by mu; at most window
	done    uint64                 // guarded by mu; messages finished
	window  uint64                 // guarded by mu; limit of unsettled messages
	stopped bool                   // guarded by mu
	retry   *time.Timer            // guarded by mu; not nil while it waits for its target
	seen    uint64                 // guarded by mu; changes of definitions when a target was last read
	delay   time.Duration          // guarded by mu; how long it waited last
}

// transfer is a message that is to be moved.
type transfer struct {
	queueserver.Delivery
	failure error // why it can never be forwarded; nil is not known
}

// source is a queue that is moved from.
type source struct {
	n    *catalog.Entity
	part queueserver.SubQueue
}

func (m *forwarder) start() {
	// A shard that has stopped delivers nothing.
	id := m.n.Shard.AddSink(m)
	_ = m.n.Shard.Attach(queueserver.Attachment{Consumer: id, ID: m.n.ID, SubQueue: m.part, Internal: true}, func(err error) {
		if err != nil {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.id = id
		if m.stopped {
			_ = m.n.Shard.Detach(id)
			return
		}
		m.allow()
	})
}

// stop ends the forwarder. Its messages are released, except those that are being sent to
// their target.
func (m *forwarder) stop() {
	m.mu.Lock()
	m.stopped = true
	m.endWait()
	if m.id != 0 {
		_ = m.n.Shard.Detach(m.id)
	}
	inbox := m.inbox
	m.inbox = nil
	m.mu.Unlock()
	m.job.Stop()
	m.releaseAll(inbox)
}

// Deliver implements Sink.
func (m *forwarder) Deliver(ds []queueserver.Delivery) {
	ts := make([]transfer, len(ds))
	for i := range ds {
		ts[i].Delivery = ds[i]
		if ds[i].Body.Size > keptSize {
			ts[i].Unload()
		}
	}
	m.put(ts)
}

// put queues messages for the job. A forwarder that was stopped has none: they are
// released.
func (m *forwarder) put(ts []transfer) {
	m.mu.Lock()
	if m.stopped {
		m.mu.Unlock()
		m.releaseAll(ts)
		return
	}
	if m.inbox == nil {
		m.inbox = ts
	} else {
		m.inbox = append(m.inbox, ts...)
	}
	m.mu.Unlock()
	m.job.Wake()
}

// Drained implements Sink.
func (m *forwarder) Drained() {}

// Ended implements Sink.
func (m *forwarder) Ended(error) {}

// take returns the messages of one turn.
func (m *forwarder) take() []transfer {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := min(len(m.inbox), Turn)
	ts := m.inbox[:n:n]
	if m.inbox = m.inbox[n:]; len(m.inbox) == 0 {
		m.inbox = nil // its memory is in use by the batch
	}
	return ts
}

// Name implements jobs.Job.
func (m *forwarder) Name() string { return jobName }

// Run implements jobs.Job: it moves some messages.
func (m *forwarder) Run(ctx context.Context) (jobs.Next, error) {
	ts := m.take()
	for i := range ts {
		m.move(ctx, &ts[i])
	}
	if len(ts) == 0 {
		return jobs.Next{}, nil
	}
	return jobs.Again(), nil
}

// allow sets the delivery limit to what window allows. The caller has mu: limits must
// reach the shard in the order in which they were computed, or the lower of two would
// apply. Posting one never blocks and never calls back.
func (m *forwarder) allow() {
	if m.id != 0 && !m.stopped && m.retry == nil {
		_ = m.n.Shard.SetDeliveryLimit(m.id, m.done+m.window)
	}
}

// next counts a finished message and raises the delivery limit.
func (m *forwarder) next() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done++
	m.allow()
}

// moved counts a message that is durable at its target, and grows the window.
func (m *forwarder) moved() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done++
	if m.retry == nil {
		m.window, m.delay = min(2*m.window, Window), 0
	}
	m.allow()
}

// refused releases a message because the target accepts nothing, and lets the forwarder
// wait.
func (m *forwarder) refused(t queue.Token) {
	m.mu.Lock()
	if m.retry == nil && !m.stopped {
		m.window = 1
		m.delay = min(max(2*m.delay, minMoveRetry), maxMoveRetry)
		m.retry = time.AfterFunc(m.delay, m.resume)
		m.ms.waiting.Add(1)
		if m.id != 0 {
			_ = m.n.Shard.SetDeliveryLimit(m.id, m.done) // no more than it has now
		}
		// A change since the target was read has found no waiting forwarder. One from now on
		// finds this one, because waiting was counted before this.
		if m.seen != m.ms.changes.Load() {
			m.endWait()
			m.allow()
		}
	}
	m.mu.Unlock()
	m.release(t)
}

// waits reports whether the forwarder waits for its target.
func (m *forwarder) waits() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.retry != nil
}

// idle reports whether the forwarder moves nothing at present.
func (m *forwarder) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.retry != nil || m.stopped
}

// resume ends the wait for the target: one message is tried.
func (m *forwarder) resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endWait()
	m.allow()
}

// endWait ends the wait, if there is one. The caller has mu.
func (m *forwarder) endWait() {
	if m.retry != nil {
		m.retry.Stop()
		m.retry = nil
		m.ms.waiting.Add(-1)
	}
}

// release requeues a message with its delivery count unchanged.
func (m *forwarder) release(t queue.Token) {
	m.n.Settle(m.part, []queue.Token{t}, catalog.Outcome{Disposition: catalog.Release}, func([]error) { m.next() })
}

func (m *forwarder) releaseAll(ts []transfer) {
	for i := range ts {
		m.release(ts[i].Token)
	}
}

// to returns the name of the target; empty is none.
func (m *forwarder) to() string {
	q := &m.n.Definition().Properties
	if m.part == queueserver.DeadLetter {
		return q.ForwardDeadLetteredMessagesTo
	}
	return q.ForwardTo
}

// follows reports whether the forwarder may find its target changed by a change of n.
func (m *forwarder) follows(n *catalog.Entity) bool {
	if m.n == n || m.n == n.Topic {
		return true
	}
	to := m.to()
	if to == "" {
		return false
	}
	target, err := m.ms.catalog.Writable(to)
	return err == nil && (target == n || target == n.Topic)
}

// move sends one message to its target. It may read the disk and evaluate rules, and waits
// while too many bytes are under way.
func (m *forwarder) move(ctx context.Context, t *transfer) {
	m.mu.Lock()
	m.seen = m.ms.changes.Load()
	m.mu.Unlock()
	d := &t.Delivery
	if m.idle() {
		m.release(d.Token)
		return
	}
	size := d.Size()
	if m.ms.space.Take(ctx, size) != nil { // the broker stops
		m.release(d.Token)
		return
	}
	if !m.load(t, func() { m.ms.space.Release(size) }) {
		m.ms.space.Release(size)
	}
}

// load reads a message and sends it. It reports whether it did: free is called when the message
// is stored.
func (m *forwarder) load(t *transfer, free func()) (sent bool) {
	d := &t.Delivery
	msg, err := d.Message()
	if err != nil || d.Damaged() {
		m.next() // settled meanwhile, or unreadable and a dead letter
		return false
	}
	if d.Saved != (queue.Ref{}) {
		msg = stateless(msg)
	}
	d.Unload() // until it is stored, what sends it has it
	if t.failure != nil {
		m.setAside(d, msg, reasonForward, errtext.Text(t.failure), free)
		return true
	}
	if m.n.Kind == catalog.KindTopic {
		m.send(m.n, d, msg, d.Hops, free) // publishing a stored message is no hop
		return true
	}
	to := m.to()
	if to == "" { // no longer
		m.release(d.Token)
		return false
	}
	if m.part == queueserver.DeadLetter {
		msg = sourced(msg, entity.Path{Entity: m.n.Path}.String())
	}
	if d.Hops >= maxHops {
		m.setAside(d, msg, reasonHops, fmt.Sprintf("forwarded %d times; %q would be one more", d.Hops, to), free)
		return true
	}
	target, err := m.ms.catalog.Writable(to)
	if err != nil {
		m.failed(d, err)
		return false
	}
	m.send(target, d, msg, d.Hops+1, free)
	return true
}

// send stores the message at its target. In the same shard that and its removal here are
// one group; otherwise it is removed here when it is durable there.
func (m *forwarder) send(target *catalog.Entity, d *queueserver.Delivery, msg *message.Message, hops uint8, free func()) {
	o := catalog.SendOptions{Hops: hops, Origin: m.origin(d), Held: target == m.n, Waits: true} // on a worker of its own
	moves := target.Shard == m.n.Shard
	if moves {
		o.Settle = queueserver.Locked{ID: m.n.ID, SubQueue: m.part, Token: d.Token}
	}
	m.ms.catalog.Send(target, []*message.Message{msg}, o, func(_ []queue.SeqNo, err error) {
		free()
		switch {
		case err != nil:
			m.failed(d, err)
		case moves:
			m.moved()
		default:
			m.n.Settle(m.part, []queue.Token{d.Token}, catalog.Outcome{Disposition: catalog.Complete}, func([]error) { m.moved() })
		}
	})
}

// origin returns the first sequence number of a message: here, or where it was forwarded
// or published before. Of a dead letter only the latter is known. A message that a topic
// has stored gets its number when it is published.
func (m *forwarder) origin(d *queueserver.Delivery) queue.SeqNo {
	switch {
	case m.n.Kind == catalog.KindTopic && d.Hops == 0:
		return 0
	case m.n.Kind != catalog.KindTopic && m.part == queueserver.Main:
		return cmp.Or(d.Origin, d.Seq)
	}
	return d.Origin
}

// failed handles a message that its target does not accept. It may run on the goroutine of
// a shard, so it leaves the work to the job.
func (m *forwarder) failed(d *queueserver.Delivery, err error) {
	throttled, ok := errors.AsType[*catalog.ThrottledError](err)
	switch {
	case errors.Is(err, catalog.ErrStopping):
		// Locks end with the process.
	case m.final(err):
		m.put([]transfer{{*d, err}})
	case ok:
		// Messages of other classes may pass it.
		after := time.Duration(throttled.RetryAfter * float64(time.Second))
		token := d.Token
		time.AfterFunc(min(max(after, minMoveRetry), throttleRetry), func() { m.release(token) })
	default:
		m.refused(d.Token)
	}
}

// final reports whether a message with that error can never be forwarded. Dead letters
// wait for a target that does not exist.
func (m *forwarder) final(err error) bool {
	return errors.Is(err, catalog.ErrTooLarge) || errors.Is(err, catalog.ErrSessionRequired) ||
		m.part == queueserver.Main && (errors.Is(err, catalog.ErrNotFound) || errors.Is(err, catalog.ErrNotAllowed))
}

// setAside moves a message that cannot be forwarded to the transfer dead letters.
func (m *forwarder) setAside(d *queueserver.Delivery, msg *message.Message, reason, description string, free func()) {
	dead, err := message.ParseStored(msg.Edit(catalog.DeadLetterEdit(reason, description)))
	if err != nil {
		dead = msg
	}
	a := queue.Arrival{Level: d.Level, Class: d.Class, At: d.EnqueuedAt, OrderTime: d.OrderTime, Origin: d.Origin, Failures: d.Failures, Hops: d.Hops}
	a.Session, a.InSession = d.Session, d.InSession
	done := func(_ []queue.SeqNo, err error) {
		free()
		switch {
		case err == nil:
			m.moved()
		case !errors.Is(err, catalog.ErrStopping):
			m.refused(d.Token)
		}
	}
	err = m.n.Shard.Send(&queueserver.Send{
		Bodies: []*message.Message{dead},
		Copies: []queueserver.Copy{{ID: m.n.ID, SubQueue: queueserver.TransferDeadLetter, Arrival: a}},
		Settle: queueserver.Locked{ID: m.n.ID, SubQueue: m.part, Token: d.Token},
		Moved:  true,
		Done:   done,
	})
	if err != nil {
		done(nil, err)
	}
}

// stateless removes the state that a consumer has saved from a message: it is of the queue in
// which it was saved.
func stateless(m *message.Message) *message.Message {
	out, err := message.ParseStored(m.Edit(message.Edit{Properties: []message.Change{{Name: message.PropertyState, Remove: true}}}))
	if err != nil {
		return m
	}
	return out
}

// sourced writes into a forwarded dead letter where it came from.
func sourced(m *message.Message, path string) *message.Message {
	out, err := message.ParseStored(m.Edit(message.Edit{Annotations: []message.Change{
		{Name: "x-opt-deadletter-source", Value: codec.String(path)},
	}}))
	if err != nil {
		return m
	}
	return out
}
