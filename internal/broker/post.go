// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/shard"
)

// post is a batch on its way into a shard. There is one for every message, so they
// are used again: a post belongs to the shard from when it was sent until the shard
// calls Done, which is the last it does with it.
type post struct {
	shard.Send
	b    *Broker
	done func([]queue.SeqNo, error)
	out  fanOut

	// Room for what a single message needs.
	body [1]*message.Message
	copy [1]shard.Copy
}

// newPost returns a post for a batch, which stays the caller's.
func (b *Broker) newPost(batch []*message.Message, done func([]queue.SeqNo, error)) *post {
	p, ok := b.posts.Get().(*post)
	if !ok {
		p = &post{b: b}
		p.Done = p.answer
	}
	p.done = done
	p.Bodies = append(p.body[:0], batch...)
	p.Copies = p.copy[:0]
	if len(batch) > 1 {
		p.Copies = make([]shard.Copy, 0, len(batch))
	}
	return p
}

// answer tells the sender what became of its batch.
func (p *post) answer(seqs []queue.SeqNo, err error) {
	p.done(seqs, translate(err))
	p.Send = shard.Send{Done: p.Done}
	p.done, p.body, p.copy = nil, [1]*message.Message{}, [1]shard.Copy{}
	p.b.posts.Put(p)
}
