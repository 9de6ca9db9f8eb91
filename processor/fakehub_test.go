// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
)

// fakeHub is an event hub in memory, for tests with synthetic time. Like the broker's, a
// reader ends those with the same or a lower epoch, and is refused below a higher one.
type fakeHub struct {
	mu      sync.Mutex
	parts   [][]*client.Received // guarded by mu
	firsts  []client.SeqNo       // the oldest event of each that is there; guarded by mu
	readers []*fakeReader        // the one of each partition; guarded by mu
	epochs  []int64              // of the last reader; guarded by mu
	changed chan struct{}        // closed and replaced when an event or an end comes; guarded by mu
	dead    []*client.Message    // guarded by mu
	noQueue bool                 // dead letters are refused; guarded by mu
	coord   *fakeCoordinator
}

func newFakeHub(parts int) *fakeHub {
	h := &fakeHub{changed: make(chan struct{})}
	h.grow(parts)
	return h
}

// grow adds partitions.
func (h *fakeHub) grow(parts int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.parts) < parts {
		h.parts = append(h.parts, nil)
		h.firsts = append(h.firsts, 0)
		h.readers = append(h.readers, nil)
		h.epochs = append(h.epochs, -1)
	}
}

// publish appends events to a partition.
func (h *fakeHub) publish(part, count int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range count {
		n := len(h.parts[part])
		h.parts[part] = append(h.parts[part], &client.Received{
			Message: client.Message{Body: fmt.Append(nil, part, "/", n)}, SeqNo: client.SeqNo(n), Enqueued: time.Now(),
		})
	}
	h.wake()
}

// expire drops the events of a partition before one.
func (h *fakeHub) expire(part int, first client.SeqNo) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.firsts[part] = max(h.firsts[part], min(first, client.SeqNo(len(h.parts[part]))))
}

func (h *fakeHub) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *fakeHub) size(part int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.parts[part])
}

func (h *fakeHub) first(part int) client.SeqNo {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.firsts[part]
}

func (h *fakeHub) letters() []*client.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dead
}

// host is a machine on which one instance runs. It can crash, and be suspended.
type host struct {
	hub *fakeHub

	mu      sync.Mutex
	crashed chan struct{}
	running chan struct{} // closed unless the host is suspended; guarded by mu
}

func (h *fakeHub) host() *host {
	running := make(chan struct{})
	close(running)
	return &host{hub: h, crashed: make(chan struct{}), running: running}
}

func (h *host) crash() { close(h.crashed) }

func (h *host) suspend() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = make(chan struct{})
}

func (h *host) resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.running)
}

// alive waits while the host is suspended. It returns an error when it is dead; its
// goroutines can do nothing then that anybody sees.
func (h *host) alive() error {
	h.mu.Lock()
	running := h.running
	h.mu.Unlock()
	select {
	case <-running:
	case <-h.crashed:
	}
	select {
	case <-h.crashed:
		return errCrashed
	default:
		return nil
	}
}

func (h *host) isDead() bool {
	select {
	case <-h.crashed:
		return true
	default:
		return false
	}
}

var errCrashed = fmt.Errorf("fake: host crashed: %w", client.ErrClosed)

func (h *host) partitions(context.Context) ([]string, error) {
	if err := h.alive(); err != nil {
		return nil, err
	}
	h.hub.mu.Lock()
	defer h.hub.mu.Unlock()
	var out []string
	for i := range h.hub.parts {
		out = append(out, strconv.Itoa(i))
	}
	return out, nil
}

func (h *host) last(_ context.Context, partition string) (client.SeqNo, error) {
	return client.SeqNo(h.hub.size(number(partition)) - 1), h.alive()
}

func number(partition string) int {
	n, err := strconv.Atoi(partition)
	if err != nil {
		panic(err)
	}
	return n
}

func (h *host) send(_ context.Context, _ string, m *client.Message) error {
	if err := h.alive(); err != nil {
		return err
	}
	h.hub.mu.Lock()
	defer h.hub.mu.Unlock()
	if h.hub.noQueue {
		return client.ErrNotFound
	}
	h.hub.dead = append(h.hub.dead, m)
	return nil
}

func (h *host) join(ctx context.Context, s *settings) (fleet, error) {
	if err := h.alive(); err != nil {
		return nil, err
	}
	if h.hub.coord == nil {
		return nil, errors.New("fake: no coordinator")
	}
	return h.hub.coord.join(ctx, h, s)
}

func (h *host) close() {}

type fakeReader struct {
	host  *host
	part  int
	epoch int64
	next  client.SeqNo // guarded by the hub's mu
	ended bool         // guarded by the hub's mu
}

var errStolen = &client.Error{Code: stolenCode, Description: "another reader", Kind: client.ErrNotAllowed}

func (h *host) open(_ context.Context, partition string, o readerOptions) (reader, error) {
	at, epoch := o.at, o.epoch
	if err := h.alive(); err != nil {
		return nil, err
	}
	hub := h.hub
	hub.mu.Lock()
	defer hub.mu.Unlock()
	part := number(partition)
	if old := hub.readers[part]; old != nil && !old.ended {
		if epoch < old.epoch {
			return nil, errStolen
		}
		old.ended = true
		hub.wake()
	}
	r := &fakeReader{host: h, part: part, epoch: epoch}
	switch at.kind {
	case bySequence:
		r.next = at.after + 1
	case byTime:
		for _, e := range hub.parts[part] {
			if e.Enqueued.Before(at.since) {
				r.next++
			}
		}
	case latest:
		r.next = client.SeqNo(len(hub.parts[part]))
	}
	hub.readers[part] = r
	return r, nil
}

// fakeDelivery is how many events come at once at most.
const fakeDelivery = 250

// fakeStored is events that are decoded already.
type fakeStored struct {
	events []*client.Received
	size   int
}

func (s *fakeStored) Len() int            { return len(s.events) }
func (s *fakeStored) Size() int           { return s.size }
func (s *fakeStored) SeqNo() client.SeqNo { return s.events[0].SeqNo }
func (s *fakeStored) Enqueued() time.Time { return s.events[0].Enqueued }

func (s *fakeStored) Take(_ context.Context, to []*client.Received, limit int) []*client.Received {
	n := min(limit, len(s.events))
	to = append(to, s.events[:n]...)
	s.events = s.events[n:]
	return to
}

func (r *fakeReader) receive(ctx context.Context, limit int) (stored, error) {
	for {
		if err := r.host.alive(); err != nil {
			return nil, err
		}
		hub := r.host.hub
		hub.mu.Lock()
		ended, changed := r.ended, hub.changed
		var out []*client.Received
		r.next = max(r.next, hub.firsts[r.part])
		if all := hub.parts[r.part]; int(r.next) < len(all) {
			out = all[r.next:min(len(all), int(r.next)+min(limit, fakeDelivery))]
		}
		if ended {
			hub.mu.Unlock()
			return nil, errStolen
		}
		r.next += client.SeqNo(len(out))
		hub.mu.Unlock()
		if len(out) > 0 {
			return &fakeStored{out, 300 * len(out)}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-r.host.crashed:
		}
	}
}

func (r *fakeReader) Close() error {
	r.host.hub.mu.Lock()
	defer r.host.hub.mu.Unlock()
	r.ended = true
	return nil
}

// elapse lets synthetic time pass.
func elapse(d time.Duration) { <-time.After(d) }
