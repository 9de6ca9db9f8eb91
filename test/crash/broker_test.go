// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// queues are the ones that every store here has, one for each discipline.
var queues = []string{"orders", "invoices", "mail", "reports"}

// policies define the order of the queues. The class of a message follows from
// its position in its batch, so that a message that lost its class would be
// noticed.
var policies = map[string]string{
	"invoices": `{"discipline": "aging", "aging": {"every": "1ms", "upTo": 9}}`,
	"mail": `{"discipline": "weighted", "fairKey": "sys.Label", "classes": [
		{"name": "first", "level": 8, "when": "sys.Label LIKE '%/0/%'", "weight": 3}, {"name": "rest", "level": 2}]}`,
	"reports": `{"discipline": "deadline", "classes": [
		{"name": "first", "level": 2, "when": "sys.Label LIKE '%/0/%'", "objective": {"wait": "1h"}},
		{"name": "rest", "level": 8, "objective": {"wait": "30h"}}]}`,
}

// node is a broker without a wire.
type node struct{ *brokertest.Broker }

// open starts a broker on a disk and makes its queues. Small segments and
// frequent snapshots make a kill likely to hit them.
func open(ctx context.Context, disk vfs.FS) (*node, error) {
	b, err := brokertest.Open(ctx, disk, queueserver.Options{CacheBytes: 16 << 10, SnapshotAfter: 128 << 10, SnapshotStep: 100})
	if err != nil {
		return nil, err
	}
	for _, name := range queues {
		_, err := b.CreateQueue(ctx, entity.Queue{Name: name, MaxDeliveryCount: 3, Policy: json.RawMessage(policies[name])})
		if err != nil && !errors.Is(err, broker.ErrExists) {
			return nil, errors.Join(err, b.Stop())
		}
	}
	return &node{b}, nil
}

// addresses are the queues and their dead letters.
func addresses() (as []string) {
	for _, name := range queues {
		as = append(as, name, name+"/$DeadLetterQueue")
	}
	return as
}

// found is a message as a listing or a drain shows it.
type found struct {
	address string
	id      string
	level   queue.Level
	sent    time.Time
	seq     queue.SeqNo
}

// list peeks at every message there is, bodies included.
func (n *node) list(ctx context.Context) ([]found, error) {
	var all []found
	for _, a := range addresses() {
		for from := queue.SeqNo(0); ; {
			ds, err := n.Peek(ctx, a, from, 500, nil)
			if err != nil {
				return nil, err
			}
			for i := range ds {
				f, err := read(a, &ds[i])
				if err != nil {
					return nil, err
				}
				all = append(all, f)
				from = ds[i].Seq + 1
			}
			if len(ds) == 0 {
				break
			}
		}
	}
	return all, nil
}

// drain receives and deletes every message, in the order of delivery.
func (n *node) drain(ctx context.Context) ([]found, error) {
	var all []found
	for _, a := range addresses() {
		s := &collector{done: make(chan error, 1)}
		r, err := n.OpenReceiver(ctx, a, broker.ReceiverOptions{Mode: broker.ReceiveAndDelete, Sink: s})
		if err != nil {
			return nil, err
		}
		r.SetDeliveryLimit(math.MaxInt32)
		r.Drain()
		if err := <-s.done; err != nil {
			return nil, err
		}
		r.Close()
		for i := range s.got {
			f, err := read(a, &s.got[i])
			if err != nil {
				return nil, err
			}
			all = append(all, f)
		}
	}
	return all, nil
}

func read(address string, d *broker.Delivery) (found, error) {
	m, err := d.Message()
	if err != nil {
		return found{}, err
	}
	id, err := verify(m)
	return found{address, id, d.Level, d.EnqueuedAt, d.Seq}, err
}

// collector is a sink that waits for the end.
type collector struct {
	got  []broker.Delivery
	done chan error // capacity 1: the first of Drained and Ended
}

func (c *collector) Deliver(ds []broker.Delivery) { c.got = append(c.got, ds...) }
func (c *collector) Drained()                     { c.end(nil) }
func (c *collector) Ended(err error)              { c.end(err) }

func (c *collector) end(err error) {
	select {
	case c.done <- err:
	default:
	}
}

// compose makes the message of an id: its body follows from the id, so that a
// reader can check that it is unchanged.
func compose(id string, level uint8) *message.Message {
	d := message.Draft{Priority: level, PrioritySet: true, Subject: id, Body: bodyOf(id)}
	return d.Message()
}

// verify returns the id of a message, or an error if it is not as it was sent.
func verify(m *message.Message) (string, error) {
	id := m.Subject()
	var body []byte
	for data := range m.Data() {
		body = append(body, data...)
	}
	if string(body) != string(bodyOf(id)) {
		return id, errors.New("message " + id + " has another body than was sent")
	}
	return id, nil
}

// bodyOf is 20 to 500 bytes that differ from those of every other id.
func bodyOf(id string) []byte {
	h := uint32(2166136261)
	for _, c := range []byte(id) {
		h = (h ^ uint32(c)) * 16777619
	}
	body := make([]byte, 20+h%480)
	for i := range body {
		h = h*1664525 + 1013904223
		body[i] = byte(h >> 24)
	}
	return body
}
