// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// EventReaderOptions are the settings of a reader of events; nil is the default. A reader
// begins with the oldest event that the hub has, unless one of After, Since and Latest
// says otherwise.
type EventReaderOptions struct {
	Group string // consumer group; default $Default, which every hub has

	// After begins with the event after that of a number. If the hub has it no more, the
	// oldest event is the first.
	After *SeqNo
	// Since begins with the first event that was enqueued at a time or later.
	Since time.Time
	// Latest begins with the first event that is published after the reader was opened.
	Latest bool

	// Epoch makes the reader the only one of its group at the partition: it ends those with
	// a lower or the same epoch, and those without one: their Receive returns an Error with
	// the Code amqp:link:stolen. Nil is a reader beside others.
	Epoch *int64

	// Ahead is about how many bytes of events are on their way before Receive asks for them;
	// default 1 MiB. They come in deliveries of about 60 KiB, or of a larger batch; while
	// Receive waits there is always one.
	Ahead int
}

// start returns the filter that says where to begin; "" is the oldest event.
func (o *EventReaderOptions) start() (string, error) {
	given := 0
	for _, is := range []bool{o.After != nil, !o.Since.IsZero(), o.Latest} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return "", fmt.Errorf("%w: After, Since and Latest do not combine", ErrInvalid)
	case o.After != nil:
		return afterEvent(*o.After), nil
	case !o.Since.IsZero():
		return fmt.Sprintf("amqp.annotation.%s >= '%d'", names.AnnotationEnqueuedTime, o.Since.UnixMilli()), nil
	}
	return "", nil
}

func afterEvent(n SeqNo) string {
	return fmt.Sprintf("amqp.annotation.%s > '%d'", names.AnnotationSequenceNumber, n)
}

// EventReader reads the events of one partition of an event hub, in order. Reading removes
// nothing: others read the same events, and a new reader reads them again. After an outage
// it goes on behind the last event that it has returned. Its methods are safe for
// concurrent use; calls of Receive take turns.
type EventReader struct {
	client  *Client
	address string
	epoch   *int64
	link    *lazyValue[*link]
	sem     chan struct{} // capacity 1: full while someone receives
	// Guarded by sem:
	start  string        // filter of the next link
	stored *StoredEvents // of the last delivery; nil: all were returned
	from   *link         // that they came over
	window window

	single atomic.Bool // the broker knows no batches
	closed atomic.Bool
}

// eventCredit is how many events are on their way at most before Receive asks for them, and
// batchCredit how many deliveries of batches, each of about deliverySize.
const (
	eventCredit  = 1000
	batchCredit  = 16
	deliverySize = 60 << 10
	defaultAhead = batchCredit * deliverySize
)

// OpenEventReader opens a reader of a partition; see [Client.Partitions]. An empty hub
// means the entity that the address of the broker names.
func (c *Client) OpenEventReader(ctx context.Context, hub, partition string, o *EventReaderOptions) (*EventReader, error) {
	if o == nil {
		o = &EventReaderOptions{}
	}
	hub = c.entity(hub)
	r := &EventReader{
		client: c, address: hub + "/ConsumerGroups/" + cmp.Or(o.Group, "$Default") + "/Partitions/" + partition,
		epoch: o.Epoch, link: newLazyValue[*link](), sem: make(chan struct{}, 1),
	}
	r.window.ahead = cmp.Or(o.Ahead, defaultAhead)
	var err error
	if r.start, err = o.start(); err != nil {
		return nil, failure("open reader of", r.address, err)
	}
	if o.Latest {
		// A number is the same after an outage, and the end is not.
		last, err := c.LastEvent(ctx, hub, partition)
		if err != nil {
			return nil, failure("open reader of", r.address, err)
		}
		r.start = afterEvent(last)
	}
	err = c.retry(ctx, func(*outage) error {
		_, err := r.open(ctx)
		return err
	})
	if err != nil {
		return nil, failure("open reader of", r.address, err)
	}
	return r, nil
}

// open returns the reader's link, after attaching it if need be.
func (r *EventReader) open(ctx context.Context) (*link, error) {
	if r.closed.Load() {
		return nil, ErrClosed
	}
	conn, err := r.client.connection(ctx)
	if err != nil {
		return nil, err
	}
	return r.link.get(ctx, (*link).usable, func() (*link, error) {
		l, err := authorized(ctx, conn, []string{r.address}, func() (*link, error) {
			return unlessClosed(&r.closed)(conn.openReceiver(ctx, r.address, r.linkOptions()))
		})
		if err != nil || r.single.Load() || l.receiver.Properties()[names.Batches] == true {
			return l, err
		}
		r.single.Store(true)
		_ = l.close(ctx) // the one that follows counts
		return unlessClosed(&r.closed)(conn.openReceiver(ctx, r.address, r.linkOptions()))
	})
}

// linkOptions returns how the next link is attached.
func (r *EventReader) linkOptions() *amqp.ReceiverOptions {
	settled := amqp.SenderSettleModeSettled
	o := &amqp.ReceiverOptions{Credit: -1, RequestedSenderSettleMode: &settled, Properties: map[string]any{}} // window has it
	if !r.single.Load() {
		o.Properties[names.Batches] = true
	}
	if r.start != "" {
		o.Filters = []amqp.LinkFilter{amqp.NewSelectorFilter(r.start)}
	}
	if r.epoch != nil {
		o.Properties[names.Epoch] = *r.epoch
	}
	return o
}

// Receive waits for events and returns at least one and at most limit of them. When ctx
// ends before one came it returns ctx's error. Events that were sent as one batch share
// memory: who keeps one of them for long should copy it. The Body of an event that has a
// type that this package does not know is the whole event, as it is encoded.
func (r *EventReader) Receive(ctx context.Context, limit int) (out []*Received, err error) {
	limit = max(limit, 1)
	err = r.receive(ctx, func(l *link) error {
		out, err = r.collect(ctx, l.receiver, limit)
		if errors.Is(err, errBatch) && len(out) > 0 {
			_ = l.close(ctx) // the next link begins with what cannot be read
			return nil
		}
		return err
	}, func() SeqNo { return out[len(out)-1].SeqNo })
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ReceiveStored waits for a delivery of events and returns those of it that were not returned,
// at least one and at most limit, as they are stored. It is for programs that fetch many events
// ahead of their work. When ctx ends before one came it returns ctx's error.
func (r *EventReader) ReceiveStored(ctx context.Context, limit int) (s *StoredEvents, err error) {
	err = r.receive(ctx, func(l *link) error {
		if err := r.await(ctx, l.receiver); err != nil {
			return err
		}
		if s = r.stored.split(max(limit, 1)); s == r.stored {
			r.stored = nil
		}
		return nil
	}, func() SeqNo { return s.last() })
	return s, err
}

// last returns the number of the last event.
func (s *StoredEvents) last() SeqNo {
	if n := len(s.batches); n > 0 {
		return SeqNo(s.batches[n-1].First) + SeqNo(s.batches[n-1].Count) - 1
	}
	return s.SeqNo
}

// receive has get take events of the link, and begins behind the last of them if the link is
// lost.
func (r *EventReader) receive(ctx context.Context, get func(*link) error, last func() SeqNo) error {
	select {
	case r.sem <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-r.sem }()
	err := r.client.retry(ctx, func(o *outage) error {
		l, err := r.open(ctx)
		if err != nil {
			return err
		}
		o.reset(time.Now())
		return r.over(ctx, l, get)
	})
	if err != nil {
		return failure("read", r.address, err)
	}
	r.start = afterEvent(last())
	return nil
}

// over has get take events of a link.
func (r *EventReader) over(ctx context.Context, l *link, get func(*link) error) error {
	if r.from != l {
		r.stored, r.from = nil, l // what is left of an older link comes again
		r.window.most, r.window.size, r.window.out = batchCredit, deliverySize, 0
		if r.single.Load() {
			r.window.most, r.window.size = eventCredit, max(r.window.ahead/eventCredit, 1)
		}
	}
	err := get(l)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errBatch):
		_ = l.close(ctx) // so that the next link begins with it again, and not behind it
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return l.failed(ctx, err)
}

// deliveries is what a reader needs of a receiver.
type deliveries interface {
	Receive(ctx context.Context, o *amqp.ReceiveOptions) (*amqp.Message, error)
	Prefetched() *amqp.Message
	IssueCredit(n uint32) error
}

// collect returns at least one event, or an error. With errBatch there may be events from
// before what cannot be read.
func (r *EventReader) collect(ctx context.Context, from deliveries, limit int) (out []*Received, err error) {
	if err := r.await(ctx, from); err != nil {
		return nil, err
	}
	for {
		if out = r.stored.Take(ctx, out, limit-len(out)); r.stored.Len > 0 {
			if len(out) < limit {
				continue // numbers are missing, which is no matter here
			}
			return out, nil
		}
		if r.stored = nil; len(out) == limit {
			return out, nil
		}
		m := from.Prefetched()
		if m == nil {
			return out, nil
		}
		if err := r.unpack(from, m); err != nil {
			return out, err
		}
	}
}

// await waits until there are stored events.
func (r *EventReader) await(ctx context.Context, from deliveries) error {
	for r.stored == nil {
		if err := r.issue(from, 1); err != nil {
			return err
		}
		m, err := from.Receive(ctx, nil)
		if err == nil {
			err = r.unpack(from, m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unpack takes a delivery.
func (r *EventReader) unpack(from deliveries, m *amqp.Message) error {
	s, err := r.storedEvents(m)
	if err != nil {
		return err
	}
	if s.Len > 0 {
		r.stored = s
	}
	r.window.took(s.Size)
	return r.issue(from, 0)
}

// issue lets more deliveries come.
func (r *EventReader) issue(from deliveries, least int) error {
	if n := r.window.more(least); n > 0 {
		return from.IssueCredit(uint32(n))
	}
	return nil
}

// Close ends the reader, within five seconds.
func (r *EventReader) Close() error { return r.client.closing(r.shutdown) }

func (r *EventReader) shutdown(ctx context.Context) error {
	r.closed.Store(true)
	l, err := r.link.take(ctx)
	if err != nil {
		return failure("close reader of", r.address, err)
	}
	if l == nil || !l.conn.alive() {
		return nil
	}
	return l.close(ctx)
}

// Partitions returns the names of the partitions of an event hub. An empty hub means the
// entity that the address of the broker names.
func (c *Client) Partitions(ctx context.Context, hub string) ([]string, error) {
	hub = c.entity(hub)
	info, err := c.readHub(ctx, hub, map[string]any{names.ReadType: names.TypeHub})
	if err != nil {
		return nil, failure("read", hub, err)
	}
	ids, ok := info[names.PartitionIDs].([]string)
	if !ok {
		return nil, failure("read", hub, errors.New("the broker did not list the partitions"))
	}
	return ids, nil
}

// LastEvent returns the number of the youngest event that a partition got; -1 if it never
// got one. An empty hub means the entity that the address of the broker names.
func (c *Client) LastEvent(ctx context.Context, hub, partition string) (SeqNo, error) {
	hub = c.entity(hub)
	info, err := c.readHub(ctx, hub, map[string]any{names.ReadType: names.TypePartition, names.ReadPartition: partition})
	if err != nil {
		return 0, failure("read partition "+partition+" of", hub, err)
	}
	last, ok := integer(info[names.LastSequenceNumber])
	if !ok {
		return 0, failure("read partition "+partition+" of", hub, errors.New("the broker did not tell the last event"))
	}
	return SeqNo(last), nil
}

// readHub asks the broker about an event hub or a partition of it.
func (c *Client) readHub(ctx context.Context, hub string, about map[string]any) (map[string]any, error) {
	return c.manageHub(ctx, hubRequest{
		hub: hub, operation: names.Read, properties: about, needs: []string{hub, hub + names.ManagementSuffix},
	})
}
