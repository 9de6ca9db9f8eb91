// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"

	"github.com/triagemq/triagemq/internal/admin/cost"
	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/admin/rest"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// Limits of one request.
const (
	defaultPeek = 50
	maxPeek     = limits.PeekedMessages
	peekWindow  = 64      // messages in memory at a time
	bodyPreview = 4 << 10 // of each body in a list
	maxSend     = limits.SentByHTTP
	sendSpace   = 64 << 10
)

// Messages is a part of a queue's messages.
type Messages struct {
	Messages []Message `json:"messages"`
	// Next is the number to go on from; it is left out at the end.
	Next queue.SeqNo `json:"next,omitzero"`
}

// Sent says how many messages were stored.
type Sent struct {
	Sent int `json:"sent"`
}

// Batch is one message to send, or a list of them.
type Batch []Outgoing

// size is about how many bytes of JSON remain to be decoded.
func (b Batch) size() (n int) {
	for i := range b {
		n += len(b[i].Body)
		for _, p := range b[i].Properties {
			n += len(p)
		}
	}
	return n
}

// readBatch reads either. The messages of a list are counted before any is decoded.
func (c *call) readBatch(limit int64) (Batch, error) {
	body, err := c.read(limit)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		var one Outgoing
		if err := c.unmarshal(body, &one); err != nil {
			return nil, err
		}
		return Batch{one}, nil
	}
	n := 0
	if err := c.converting(len(body), func() error { n = cost.Elements(body); return nil }); err != nil {
		return nil, err
	}
	if n > maxSend {
		return nil, problem.Bad("%d messages; 1 to %d can be sent at a time.", n, maxSend)
	}
	var batch []Outgoing
	if err := c.unmarshal(body, &batch); err != nil {
		return nil, err
	}
	if len(batch) == 0 {
		return nil, problem.Bad("0 messages; 1 to %d can be sent at a time.", maxSend)
	}
	return batch, nil
}

var peekQuery = []parameter{
	{"from", "integer", "The lowest sequence number to show."},
	{"max", "integer", "Maximum number of messages to return; default 50, at most 1000."},
	{"session", "string", "Only messages of this session."},
	{"filter", "string", "Only messages for which this condition is true, in the language of subscription rules."},
}

// box is one of the queues at a path: the messages, or the dead letters.
type box struct {
	path, noun string
	address    func(*call) string
	query      []parameter // that address reads
}

// boxes are the paths under which messages can be peeked.
func boxes() []box {
	main := func(c *call) string { return c.address() }
	return []box{
		{"/queues/{queue}/messages", "QueueMessage", main, nil},
		{"/topics/{topic}/subscriptions/{subscription}/messages", "SubscriptionMessage", main, nil},
		{"/queues/{queue}/deadletters", "QueueDeadLetter", deadLetters, deadLetterQuery},
		{"/topics/{topic}/subscriptions/{subscription}/deadletters", "SubscriptionDeadLetter", deadLetters, deadLetterQuery},
		{"/topics/{topic}/deadletters", "TopicDeadLetter", deadLetters, deadLetterQuery},
	}
}

func (a *api) messageRoutes() []route {
	var rs []route
	for _, at := range boxes() {
		rs = append(rs, a.boxRoutes(at)...)
	}
	topicBox := box{"/topics/{topic}/messages", "TopicMessage", func(c *call) string { return c.address() }, nil}
	rs = append(rs, a.boxRoutes(topicBox)[0]) // a topic can be peeked: it contains scheduled messages
	for _, to := range []struct{ path, id, what string }{
		{"/queues/{queue}/messages", "sendToQueue", "queue"},
		{"/topics/{topic}/messages", "sendToTopic", "topic"},
	} {
		rs = append(rs, route{
			method: http.MethodPost, path: to.path, id: to.id, status: http.StatusCreated,
			summary: "Send a message, or a list of them as a whole, to a " + to.what + ".",
			body:    Batch{}, result: Sent{}, handle: send,
		})
	}
	return rs
}

func (a *api) boxRoutes(at box) []route {
	return []route{
		{
			method: http.MethodGet, path: at.path, id: "peek" + at.noun + "s",
			summary: "Peek messages in order of sequence number, in any state. Long bodies are truncated.",
			query:   slices.Concat(peekQuery, at.query), result: Messages{},
			handle: func(c *call) (any, error) { return peek(c, at.address(c)) },
		},
		{
			method: http.MethodGet, path: at.path + "/{seq}", id: "get" + at.noun,
			summary: "Show one message with all of its body.", query: at.query, result: Message{},
			handle: func(c *call) (any, error) { return showOne(c, at.address(c)) },
		},
		{
			method: http.MethodDelete, path: at.path + "/{seq}", id: "delete" + at.noun, status: http.StatusNoContent,
			summary: "Remove one message that is not locked.", query: at.query,
			handle: func(c *call) (any, error) {
				seq, err := c.seq()
				if err != nil {
					return nil, err
				}
				return nil, c.Broker.Remove(c.Context(), at.address(c), []queue.SeqNo{seq})
			},
		},
		{
			method: http.MethodDelete, path: at.path, id: "purge" + at.noun + "s",
			summary: "Remove messages that are not locked; all of them by default.", query: slices.Concat(purgeQuery, at.query), result: Removed{},
			handle: func(c *call) (any, error) { return purge(c, at.address(c)) },
		},
	}
}

func (c *call) seq() (queue.SeqNo, error) {
	n, err := strconv.ParseUint(c.PathValue("seq"), 10, 64)
	if err != nil {
		return 0, problem.Bad("%q is not a sequence number.", c.PathValue("seq"))
	}
	return queue.SeqNo(n), nil
}

// from is the sequence number that a request begins at.
func (c *call) from() (queue.SeqNo, error) {
	text := c.URL.Query().Get("from")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, problem.Bad("from is %q, not a sequence number.", text)
	}
	return queue.SeqNo(n), nil
}

// chooser is a condition over messages, which is charged to the request; nil takes all.
func (c *call) chooser(text string) (func(*broker.Delivery, *message.Message) bool, error) {
	if text == "" {
		return nil, nil
	}
	if err := limits.CheckText("filter", text, limits.SQL); err != nil {
		return nil, err
	}
	cond, err := filter.Parse(text, nil)
	if err != nil {
		return nil, err
	}
	if err := c.charge(filter.Cost(cond)); err != nil {
		return nil, err
	}
	return func(d *broker.Delivery, m *message.Message) bool {
		view := &filter.Envelope{Message: m, ExpiresAt: d.ExpiresAt}
		view.BrokerProperties = message.BrokerProperties{
			SequenceNumber: int64(d.Seq), EnqueuedTime: d.EnqueuedAt, LockedUntil: d.LockedUntil,
			DeliveryCount: d.Failures, EnqueuedSequenceNumber: int64(d.Origin), State: wireState(d),
		}
		matched, err := cond.Match(view)
		return err == nil && matched // one that has no answer for a message does not choose it
	}, nil
}

// wireState is the state of a message as Service Bus knows it: a lock is none.
func wireState(d *broker.Delivery) message.State {
	switch {
	case d.State == queue.Deferred || d.Deferred:
		return message.StateDeferred
	case d.State == queue.Scheduled:
		return message.StateScheduled
	}
	return message.StateActive
}

func peek(c *call, addr string) (any, error) {
	q := c.URL.Query()
	p := &peeking{c: c, addr: addr}
	var err error
	if p.from, err = c.from(); err != nil {
		return nil, err
	}
	if p.left, err = c.number("max", defaultPeek, maxPeek); err != nil {
		return nil, err
	}
	p.window = min(peekWindow, p.left)
	if p.wanted, err = c.chooser(q.Get("filter")); err != nil {
		return nil, err
	}
	if q.Has("session") {
		id := q.Get("session")
		p.session = &id
	}
	// An error before the first message sets the status.
	p.first, err = p.next()
	return p, err
}

// shownCost is how often a message is there while it is shown: as it is stored, and its
// body as a whole.
const shownCost = 2

// lookup returns one message, which is charged to the request.
func lookup(c *call, addr string, seq queue.SeqNo) (*broker.Delivery, *message.Message, error) {
	ds, err := c.Broker.Peek(c.Context(), addr, seq, 1, nil)
	if err != nil {
		return nil, nil, err
	}
	if len(ds) == 0 || ds[0].Seq != seq {
		return nil, nil, broker.ErrMessageNotFound
	}
	if !c.ChargeMemory(c.Request, shownCost*ds[0].Size()) {
		return nil, nil, problem.Busy()
	}
	m, err := ds[0].Message()
	return &ds[0], m, err
}

func showOne(c *call, addr string) (any, error) {
	seq, err := c.seq()
	if err != nil {
		return nil, err
	}
	d, m, err := lookup(c, addr, seq)
	if err != nil {
		return nil, err
	}
	return newOne(c, d, m, c.Broker.ClassName(addr, d.Class))
}

func send(c *call) (any, error) {
	to, err := c.Broker.OpenSender(c.address(), broker.SenderOptions{Key: c.grant.Holder(), Unsynced: c.Unsynced(c.Request)})
	if err != nil {
		return nil, err
	}
	defer to.Close()
	// Text takes up to six bytes in JSON for one, but then few do so often.
	batch, err := c.readBatch(max(2*to.MaxMessageSize(), limits.Body) + sendSpace)
	if err != nil {
		return nil, err
	}
	var ms []*message.Message
	err = c.converting(batch.size(), func() error {
		for i := range batch {
			m, err := batch[i].message()
			if err != nil {
				return err
			}
			ms = append(ms, m)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return Sent{len(ms)}, rest.Store(c.Context(), to, ms, c.Unsynced(c.Request))
}

var deadLetterQuery = []parameter{{"transfer", "boolean", "Use the transfer dead-letter queue."}}

// deadLetters is the address of an entity's dead letters; ?transfer=true
// selects those that could not be forwarded.
func deadLetters(c *call) string {
	part := entity.DeadLetter
	if transfer, _ := strconv.ParseBool(c.URL.Query().Get("transfer")); transfer {
		part = entity.TransferDeadLetter
	}
	return entity.Path{Entity: c.address(), SubQueue: part}.String()
}
