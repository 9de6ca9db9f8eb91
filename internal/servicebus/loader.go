// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// loader turns what the broker delivers into bytes for the wire, in order, on a
// goroutine that lives while there is work: bodies may have to be read from disk,
// for which neither the broker nor the connection can wait.
//
// Its queue is bounded by the credit that the peer's links were given.
type loader struct {
	c *conn

	mu      sync.Mutex
	waiting []work // guarded by mu
	running bool   // guarded by mu
	closed  bool   // guarded by mu

	spare sync.Pool // of *loaded
}

// work is one call of the broker to a Sink.
type work struct {
	to         *receiver
	deliveries []broker.Delivery
	source     int       // of a set, that they are from
	kind       eventKind // of a call without deliveries
	err        error
}

// loaded is a call's worth of deliveries, encoded one after the other into buf.
type loaded struct {
	buf        []byte
	parcels    []parcel
	forGood    []broker.Delivery // beside parcels, if they were taken for good: they may have to go back
	unreadable []queue.Token     // could not be read; they go back
	taken      int               // how many deliveries the broker made
	source     int               // of a set, that they are from
}

type parcel struct {
	token    queue.Token
	tag      [16]byte
	from, to int
}

func (l *loader) init(c *conn) {
	l.c = c
	l.spare.New = func() any { return new(loaded) }
}

// add queues w. It may be called from any goroutine and never blocks.
func (l *loader) add(w work) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		w.giveBack()
		return
	}
	if !l.running && w.inMemory() {
		// What has just come is sent without a detour. Under mu, so that close
		// is either before or after.
		l.c.out.post(event{to: w.to, kind: eventReady, ready: &w})
		return
	}
	l.waiting = append(l.waiting, w)
	if !l.running {
		l.running = true
		l.c.helper.Go(l.run) // under mu, so that close is either before or after
	}
}

// close makes the loader give back what still comes. What it has taken already
// ends with the connection.
func (l *loader) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

func (l *loader) run() {
	for {
		l.mu.Lock()
		batch := l.waiting
		l.waiting = nil
		l.running = len(batch) > 0
		l.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for i := range batch {
			l.load(&batch[i])
		}
	}
}

func (l *loader) load(w *work) {
	switch {
	case w.deliveries == nil:
		l.c.out.post(event{to: w.to, kind: w.kind, err: w.err})
	case l.c.ctx.Err() != nil:
		w.giveBack()
	default:
		l.c.out.post(event{to: w.to, kind: eventLoaded, load: l.encode(w)})
	}
}

// inMemory reports whether nothing has to be read from disk.
func (w *work) inMemory() bool {
	return w.deliveries != nil && !slices.ContainsFunc(w.deliveries, func(d broker.Delivery) bool { return !d.Loaded() })
}

// giveBack returns messages that no peer will get. They were never seen, so it
// does not count against them.
func (w *work) giveBack() { broker.Return(w.deliveries) }

// encode encodes the deliveries of w, and is the last to see them.
func (l *loader) encode(w *work) *loaded {
	out := l.spare.Get().(*loaded)
	out.reset()
	out.taken, out.source = len(w.deliveries), w.source
	source := w.to.source(w.source)
	for i := range w.deliveries {
		d := &w.deliveries[i]
		m, err := d.Message()
		switch {
		case errors.Is(err, queue.ErrNotFound):
			continue // settled meanwhile, by its token
		case err != nil:
			l.c.log.Error("read message", "entity", w.to.path, "sequence", d.Seq, "err", err)
			out.unreadable = append(out.unreadable, d.Token)
			continue
		}
		l.c.svc.broker.HandedOut(cmp.Or(source, w.to.path), d, m)
		from := len(out.buf)
		rfc := d.Token.Bytes()
		stamp := stampOf(d, w.to.mode)
		stamp.Source = source
		stamp.Level, stamp.HasLevel = uint8(d.Level), w.to.wishes.recall
		out.buf = message.AppendDelivery(out.buf, m, stamp)
		out.parcels = append(out.parcels, parcel{d.Token, message.GUIDFromRFC(rfc), from, len(out.buf)})
		if w.to.mode == broker.ReceiveAndDelete {
			out.forGood = append(out.forGood, *d)
		}
	}
	if from, ok := w.to.origin().(*broker.Receiver); ok {
		from.Recycle(w.deliveries)
	}
	w.deliveries = nil
	return out
}

// maxSpare is the largest buffer that is kept for reuse.
const maxSpare = 1 << 20

// recycle takes back what encode made, once it has been sent.
func (l *loader) recycle(out *loaded) {
	clear(out.forGood) // the messages must not live on in it
	if cap(out.buf) <= maxSpare {
		l.spare.Put(out)
	}
}

func (out *loaded) reset() {
	out.buf, out.parcels, out.forGood = out.buf[:0], out.parcels[:0], out.forGood[:0]
	out.unreadable, out.taken, out.source = out.unreadable[:0], 0, 0
}

// stampOf says what goes onto a message that is delivered on a link.
func stampOf(d *broker.Delivery, mode broker.Mode) message.Stamp {
	s := message.Stamp{
		SequenceNumber:         int64(d.Seq),
		EnqueuedTime:           d.EnqueuedAt,
		DeliveryCount:          d.Failures,
		EnqueuedSequenceNumber: int64(d.Origin),
	}
	if mode == broker.PeekLock {
		s.LockedUntil = d.LockedUntil
		s.LockToken, s.HasLock = d.Token.Bytes(), true
	}
	return s
}
