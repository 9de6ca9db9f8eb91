// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/Azure/go-amqp"
)

// inbox hands incoming replies to those who wait for them, by correlation id.
type inbox struct {
	link    *link
	address string // for the reply-to of a request
	session string // for its reply-to-group-id
	done    chan struct{}

	mu      sync.Mutex
	waiting map[string]chan *amqp.Message // capacity 1; guarded by mu
	err     error                         // why it ended; set before done closes
}

// errInboxEnded means that a link ended without saying why.
var errInboxEnded = errors.New("client: reply link ended")

// inboxCredit is how many replies may come at once; go-amqp tops it up.
const inboxCredit = 500

// newInbox starts reading replies from l.
func newInbox(l *link, address, session string) *inbox {
	b := &inbox{
		link: l, address: address, session: session,
		done: make(chan struct{}), waiting: map[string]chan *amqp.Message{},
	}
	l.conn.work.Go(b.read)
	return b
}

func (b *inbox) usable() bool { return b.link.usable() }

func (b *inbox) read() {
	defer close(b.done)
	for {
		m, err := b.link.receiver.Receive(b.link.conn.life, nil)
		if err != nil {
			b.err = errors.Join(errInboxEnded, err)
			b.link.broken.Store(true)
			return
		}
		var id string
		if m.Properties != nil {
			id = identifier(m.Properties.CorrelationID)
		}
		b.mu.Lock()
		wait := b.waiting[id]
		b.mu.Unlock()
		select {
		case wait <- m:
		default: // nobody waits, or it is the second reply
		}
	}
}

// expect announces a request; forget must follow. Two of one ID could not tell their
// replies apart, and one of them would wait for nothing.
func (b *inbox) expect(id string) (<-chan *amqp.Message, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting[id] != nil {
		return nil, fmt.Errorf("%w: a request with the ID %q waits for its reply already", ErrInvalid, id)
	}
	wait := make(chan *amqp.Message, 1)
	b.waiting[id] = wait
	return wait, nil
}

func (b *inbox) forget(id string) {
	b.mu.Lock()
	delete(b.waiting, id)
	b.mu.Unlock()
}

// await waits for the reply to a request that was announced and sent.
func (b *inbox) await(ctx context.Context, reply <-chan *amqp.Message) (*amqp.Message, error) {
	select {
	case m := <-reply:
		return m, nil
	case <-b.done:
		return nil, b.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
