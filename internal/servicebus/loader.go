// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/servicebus/management"
)

const (
	// maxAhead bounds the bytes of deliveries that were encoded, or are about to be,
	// and that the endpoint has not taken yet. Beyond it deliveries wait as they came
	// from the broker, without their bodies. While memory is short it is maxEncoded.
	maxAhead = 2 << 20
	// maxEncoded is how many bytes are encoded at a time, or one delivery.
	maxEncoded = 256 << 10
	// deliveryCost is what a delivery takes beside its body.
	deliveryCost = 256
)

// Kinds of events of a receiver.
const (
	eventSettled uint8 = iota // Value is a *settlement
	eventLoaded               // Value is a *loaded: deliveries ready to leave
	eventReady                // Value is a *work: deliveries that need no loading
	eventDrained
	eventEnded // Err
)

// loader turns what the broker delivers into bytes for the wire, in order, on a
// goroutine that lives while there is work: bodies may have to be read from disk,
// for which neither the broker nor the connection can wait.
//
// While the memory of its key, or of the process, is used up, deliveries go back, and one
// of each link is tried again now and then.
//
// Its queue is bounded by the credit that the peer's links were given, and what it
// makes by maxAhead: a peer that reads slowly makes it wait.
//
//	broker ──► waiting ──► encode ──► outbox ──► receiver.held ──► endpoint
//	           no bodies   └─────────── about maxAhead ─────────┘
type loader struct {
	c *links

	mu      sync.Mutex
	waiting []work         // guarded by mu
	running bool           // guarded by mu
	closed  bool           // guarded by mu
	ahead   int64          // bytes that were posted and not sent; guarded by mu
	mem     budget.Counter // charges what is here and ahead; guarded by mu
	space   *sync.Cond     // of mu: ahead has become less, or closed is set
	usedUp  atomic.Bool    // there is no memory for what comes next
	again   time.Duration  // after which it is asked for again; guarded by mu

	spare sync.Pool // of *loaded
}

// work is one call of the broker to a Sink.
type work struct {
	to         *receiver
	deliveries []broker.Delivery // that are not encoded yet
	batch      []broker.Delivery // all of the call
	source     int               // of a set, that they are from
	kind       uint8             // of a call without deliveries
	err        error
	charge     int64 // what deliveries take
}

// loaded is deliveries of one call, encoded one after the other into buf.
type loaded struct {
	buf        []byte
	messages   []encodedMessage
	settled    []broker.Delivery // beside messages, if they were received settled: they may have to go back
	unreadable []queue.Token     // could not be read; they go back
	taken      int               // how many deliveries the broker made
	source     int               // of a set, that they are from
	charge     int64             // what it takes
}

type encodedMessage struct {
	token    queue.Token
	tag      [16]byte
	from, to int
}

func (l *loader) init(c *links) {
	l.c = c
	l.space = sync.NewCond(&l.mu)
	l.mem = budget.NewCounter(c.Memory().Account)
	l.spare.New = func() any { return new(loaded) }
}

// add queues w. It may be called from any goroutine and never blocks.
func (l *loader) add(w work) {
	w.batch = w.deliveries
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		w.giveBack()
		return
	}
	w.charge = w.cost()
	space := !l.full() && l.mem.TakeBeyond(w.charge)
	if space && !l.running && w.inMemory() {
		// What has just come is sent without a detour. Under mu, so that close
		// is either before or after.
		l.ahead += w.charge
		l.c.Post(azure.Event{To: w.to, Kind: eventReady, Value: &w})
		return
	}
	if !space {
		for i := range w.deliveries {
			w.deliveries[i].Unload()
		}
		w.charge = w.cost()
		l.mem.Add(w.charge)
	}
	l.waiting = append(l.waiting, w)
	if !l.running {
		l.running = true
		l.c.Go(l.run) // under mu, so that close is either before or after
	}
}

// cost is what the deliveries of w take.
func (w *work) cost() int64 {
	n := deliveryCost * int64(len(w.deliveries))
	for i := range w.deliveries {
		if d := &w.deliveries[i]; d.Loaded() {
			n += d.Size()
		}
	}
	return n
}

// close makes the loader give back what still comes. What it has taken already
// ends with the connection.
func (l *loader) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.space.Broadcast()
}

// release gives back what is still charged, when nothing is left.
func (l *loader) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mem.Close()
}

func (l *loader) run() {
	for {
		l.mu.Lock()
		if l.running = len(l.waiting) > 0; !l.running {
			l.waiting = nil
			l.mu.Unlock()
			return
		}
		w := l.waiting[0]
		l.waiting[0] = work{}
		l.waiting = l.waiting[1:]
		l.mu.Unlock()
		l.load(&w)
	}
}

// load posts what becomes of w, in parts as there is space ahead.
func (l *loader) load(w *work) {
	if w.deliveries == nil {
		l.c.Post(azure.Event{To: w.to, Kind: w.kind, Err: w.err})
		return
	}
	for len(w.deliveries) > 0 {
		n, ok := l.reserve(w)
		if !ok {
			w.giveBack()
			return
		}
		if w.deliveries == nil {
			return
		}
		out := l.encode(w)
		l.mu.Lock()
		l.mem.Release(n)
		l.mem.Add(out.charge)
		l.ahead += out.charge
		l.mu.Unlock()
		l.c.Post(azure.Event{To: w.to, Kind: eventLoaded, Value: out})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mem.Release(w.charge)
}

// How long the loader waits before it asks for memory again that others have used up.
const (
	soonestAgain = 10 * time.Millisecond
	latestAgain  = time.Second
)

// reserve returns when there is space ahead, and memory for what is encoded next, which
// it has charged then; false means that the connection is over. If others have used up
// the memory everything goes back, or what waits for memory would be what uses it up, and
// comes again a little later: nothing is left of w then.
func (l *loader) reserve(w *work) (n int64, ok bool) {
	n = int64(w.next())
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.full() && !l.closed {
		l.space.Wait()
	}
	if l.closed || l.mem.TakeBeyond(n) {
		l.usedUp.Store(false)
		l.again = 0
		return n, l.c.Context().Err() == nil
	}
	l.usedUp.Store(true)
	l.again = min(max(2*l.again, soonestAgain), latestAgain)
	back := []azure.Event{l.giveUp(w)}
	l.waiting = slices.DeleteFunc(l.waiting, func(w work) bool {
		if w.deliveries == nil {
			return false
		}
		back = append(back, l.giveUp(&w))
		return true
	})
	over := false
	timer := time.AfterFunc(l.again, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		over = true
		l.space.Broadcast()
	})
	for !over && !l.closed {
		l.space.Wait()
	}
	timer.Stop()
	for _, e := range back {
		l.c.Post(e)
	}
	return 0, true
}

// giveUp returns the deliveries of w, and what is to be posted when others may come in
// their place; mu is held.
func (l *loader) giveUp(w *work) azure.Event {
	out := l.spare.Get().(*loaded)
	out.reset()
	out.taken, out.source = len(w.deliveries), w.source
	w.giveBack()
	l.mem.Release(w.charge)
	w.deliveries, w.batch, w.charge = nil, nil, 0
	return azure.Event{To: w.to, Kind: eventLoaded, Value: out}
}

// full reports whether nothing more is to be encoded now; mu is held.
func (l *loader) full() bool {
	return l.ahead >= maxAhead || l.ahead >= maxEncoded && l.mem.Scarce()
}

// sent says that the endpoint has taken what was charged with n, or that it went back.
func (l *loader) sent(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ahead -= n
	l.mem.Release(n)
	if l.running {
		l.space.Signal()
	}
}

// inMemory reports whether nothing has to be read from disk.
func (w *work) inMemory() bool {
	return w.deliveries != nil && !slices.ContainsFunc(w.deliveries, func(d broker.Delivery) bool { return !d.Loaded() })
}

// giveBack returns messages that no peer will get. They were never seen, so it
// does not count against them.
func (w *work) giveBack() { broker.Return(w.deliveries) }

// next returns about how many bytes encode makes at a time.
func (w *work) next() (size int) {
	for i := range w.deliveries {
		if size += int(w.deliveries[i].Size()) + deliveryCost; size >= maxEncoded {
			break
		}
	}
	return size
}

// encode encodes the next deliveries of w, up to maxEncoded bytes, and is the last to
// see them.
func (l *loader) encode(w *work) *loaded {
	out := l.spare.Get().(*loaded)
	out.reset()
	out.source = w.source
	out.buf = slices.Grow(out.buf, w.next())
	source := w.to.source(w.source)
	for len(w.deliveries) > 0 && (len(out.buf) == 0 || len(out.buf) < maxEncoded) {
		d := &w.deliveries[0]
		w.deliveries = w.deliveries[1:]
		out.taken++
		m, err := d.Message()
		switch {
		case errors.Is(err, queue.ErrNotFound):
			continue // settled meanwhile, by its token
		case err != nil:
			l.c.Log().Error("read message", "entity", w.to.path, "sequence", d.Seq, "err", err)
			out.unreadable = append(out.unreadable, d.Token)
			continue
		}
		l.c.broker.NoteDelivered(cmp.Or(source, w.to.path), l.c.Sending().Key, d, m)
		from := len(out.buf)
		rfc := d.Token.Bytes()
		stamp := management.StampOf(d, w.to.mode)
		stamp.Source = source
		stamp.Level, stamp.HasLevel = uint8(d.Level), w.to.options.recall || w.to.options.tell
		if w.to.options.tell {
			stamp.Class, stamp.Objective = l.c.broker.ClassOf(cmp.Or(source, w.to.path), d.Class)
		}
		out.buf = message.AppendDelivery(out.buf, m, stamp)
		out.messages = append(out.messages, encodedMessage{d.Token, message.GUIDFromRFC(rfc), from, len(out.buf)})
		if w.to.mode == broker.ReceiveAndDelete {
			out.settled = append(out.settled, *d)
		}
		d.Unload() // it stays in the batch until all of that is encoded
	}
	out.charge = int64(len(out.buf) + deliveryCost*len(out.messages))
	if len(w.deliveries) == 0 {
		if from, ok := w.to.brokerReceiver().(*broker.Receiver); ok {
			from.Recycle(w.batch)
		}
		w.deliveries, w.batch = nil, nil
	}
	return out
}

// maxSpare is the largest buffer that is kept for reuse.
const maxSpare = 1 << 20

// recycle takes back what encode made, once it has been sent.
func (l *loader) recycle(out *loaded) {
	clear(out.settled) // the messages must not live on in it
	if cap(out.buf) <= maxSpare {
		l.spare.Put(out)
	}
}

func (out *loaded) reset() {
	out.buf, out.messages, out.settled = out.buf[:0], out.messages[:0], out.settled[:0]
	out.unreadable, out.taken, out.source, out.charge = out.unreadable[:0], 0, 0, 0
}
