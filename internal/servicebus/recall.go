// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"strings"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// recallSuffix makes the address of an entity that of its recalls. It is on the
// wire and never changes.
const recallSuffix = names.RecallSuffix

// maxRecalls bounds what waits for a peer that does not read its recalls. One that
// is lost costs a better message its place at the front, and nothing else.
const maxRecalls = 1000

func isRecall(addr string) bool { return strings.HasSuffix(strings.ToLower(addr), recallSuffix) }

// recalls is a link on which a peer is asked for messages back that it got on
// another link of the connection and has not started. Each message is a list of
// lock tokens. The peer accepts it if it gives them back; it releases it if it has
// started them, and is then asked for others.
type recalls struct {
	c       *links
	link    *endpoint.Link
	next    uint64 // makes delivery tags
	main    *receiver
	waiting [][]queue.Token // for credit, oldest first
	open    int             // sent, and not answered
}

func (c *links) attachRecalls(l *endpoint.Link) error {
	addr := l.Address()
	path := wire.PathOf(addr[:len(addr)-len(recallSuffix)])
	if err := c.Require(access.Listen, path); err != nil {
		return err
	}
	name, _ := wire.LookupText(l.Remote().Properties, names.Link)
	for r := range c.receivers {
		if r.link.Name() == name && r.path == path && r.options.recall {
			r.recalls = &recalls{c: c, link: l, main: r}
			c.Attached(l, r.recalls)
			l.Accept(endpoint.Accept{})
			return nil
		}
	}
	return endpoint.Errorf(endpoint.CondNotFound, "There is no receiver '%s' that gives messages back.", name)
}

func (n *recalls) Transfer(*endpoint.Incoming) {}

func (n *recalls) Check() error    { return n.c.Require(access.Listen, n.main.path) }
func (n *recalls) Paths() []string { return []string{n.main.path} }

func (n *recalls) Detached() {
	if n.main.recalls == n {
		n.main.recalls = nil
	}
}

// Recall asks the peer for messages back; it is called on the broker's goroutine.
func (r *receiver) Recall(tokens []queue.Token) {
	r.c.Do(func() {
		if n := r.recalls; n != nil && len(n.waiting) < maxRecalls {
			n.waiting = append(n.waiting, tokens)
			n.Credit()
		}
	})
}

func (n *recalls) Credit() {
	for len(n.waiting) > 0 {
		n.next++
		// A peer that answers nothing costs nothing.
		silent := n.link.Remote().SenderSettleMode == frame.SenderSettled || n.open >= maxRecalls
		o := endpoint.Outgoing{Tag: wire.Tag(n.next), Settled: silent, Payload: encodeRecall(n.waiting[0]), Value: n.waiting[0]}
		if n.link.Send(o) != nil {
			break
		}
		if !silent {
			n.open++
		}
		n.waiting = n.waiting[1:]
	}
	n.link.DrainDone()
}

// disposition passes on what the peer does not give back.
func (n *recalls) Disposition(o *endpoint.Outcome) {
	from, _ := n.main.brokerReceiver().(*broker.Receiver)
	kept := o.State.Kind == frame.StateReleased || o.State.Kind == frame.StateModified || o.State.Kind == frame.StateRejected
	for _, d := range o.Deliveries {
		n.open--
		if tokens, ok := d.Value.([]queue.Token); ok && kept && from != nil {
			from.DeclineRecall(tokens)
		}
		n.link.SettleOut(d.ID, frame.Accepted())
	}
}

func encodeRecall(tokens []queue.Token) []byte {
	var list []codec.Value
	for _, t := range tokens {
		list = append(list, codec.UUID(t.Bytes()))
	}
	value := codec.List(list...)
	d := message.Draft{Value: &value}
	return d.Encode(nil)
}
