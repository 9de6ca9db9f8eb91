// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/admin/property"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// How long a request waits for a message, in seconds.
const (
	defaultWait = 60
	maxWait     = 600
)

// answerCost is how often a message is there while it is answered with: as it is
// stored, and as a body.
const answerCost = 2

// hand receives one message. It is a Sink; each channel has space for all that
// can arrive.
type hand struct {
	got     chan broker.Delivery
	drained chan struct{}
	ended   chan error
}

func (h *hand) Deliver(ds []broker.Delivery) {
	for _, d := range ds {
		h.got <- d
	}
}
func (h *hand) Drained()        { h.drained <- struct{}{} }
func (h *hand) Ended(err error) { h.ended <- err }

// receive answers with the next message, or with 204 if none arrives in time.
func (c *call) receive(mode broker.Mode) error {
	wait, err := c.wait()
	if err != nil {
		return err
	}
	h := &hand{make(chan broker.Delivery, 1), make(chan struct{}, 1), make(chan error, 1)}
	from, err := c.Broker.OpenReceiver(c.Context(), c.entity, broker.ReceiverOptions{Mode: mode, Name: "http", Sink: h})
	if err != nil {
		return err
	}
	defer from.Close()
	d, err := c.await(from, h, wait)
	if err != nil {
		return err
	}
	if d == nil {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if c.Context().Err() != nil { // the client has disconnected
		broker.Return([]broker.Delivery{*d})
		return nil
	}
	if err := c.recheck(access.OfRoute(receiving)); err != nil {
		broker.Return([]broker.Delivery{*d}) // it waited for longer than its right lasted
		return err
	}
	if !c.ChargeMemory(c.Request, answerCost*d.Size()) {
		broker.Return([]broker.Delivery{*d})
		return problem.Busy()
	}
	m, err := d.Message()
	if err != nil {
		return err
	}
	body, ok := bodyOf(m, c.charge)
	if !ok || !setHeaders(c.w.Header(), m, c.charge) {
		broker.Return([]broker.Delivery{*d})
		return problem.Busy()
	}
	c.Broker.NoteDelivered(c.entity, c.grant.Holder(), d, m)
	return c.answer(d, m, body)
}

// charge charges n bytes until the handler returns, and reports whether there was space for them.
func (c *call) charge(n int64) bool { return c.ChargeMemory(c.Request, n) }

// await waits for a message. When the time is up it drains, so that a message
// that is just on its way is not left behind under a lock.
func (c *call) await(from *broker.Receiver, h *hand, wait time.Duration) (*broker.Delivery, error) {
	from.SetDeliveryLimit(1)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case d := <-h.got:
		return &d, nil
	case err := <-h.ended:
		return nil, err
	case <-timer.C:
	case <-c.Context().Done():
	}
	from.Drain()
	select {
	case d := <-h.got:
		return &d, nil
	case err := <-h.ended:
		return nil, err
	case <-h.drained:
	}
	select {
	case d := <-h.got: // it arrived before the drain was done
		return &d, nil
	default:
		return nil, nil
	}
}

func (c *call) wait() (time.Duration, error) {
	text := c.URL.Query().Get("timeout")
	if text == "" {
		return defaultWait * time.Second, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, problem.Bad("The timeout is %q, not a number of seconds.", text)
	}
	return time.Duration(min(n, maxWait)) * time.Second, nil
}

// answer writes a message, whose properties are among the headers already. A locked message is
// sent with the address by which it is settled.
func (c *call) answer(d *broker.Delivery, m *message.Message, body []byte) error {
	p := received(d, m)
	head := c.w.Header()
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	head[headerProperties] = []string{ascii(string(b))} // in its own spelling
	setBodyHeaders(head, m.ContentType())
	status := http.StatusOK
	if p.LockToken != "" {
		status = http.StatusCreated
		head.Set("Location", c.location(p))
	}
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // the client has left, then; the lock runs out
	return nil
}

// setBodyHeaders says what the body is, in the words of its sender, and that it is
// nothing to be shown: a browser must not run what a sender wrote as ours.
func setBodyHeaders(head http.Header, contentType string) {
	if _, _, err := mime.ParseMediaType(contentType); err != nil {
		contentType = "application/octet-stream"
	}
	head.Set("Content-Type", contentType)
	head.Set("Content-Disposition", "attachment")
	head.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "no-store")
}

// location is the address of a locked message. It names the number and not the
// message-id, which may be missing or contain anything.
func (c *call) location(p brokerProperties) string {
	scheme := "http"
	if c.Encrypted(c.Request) {
		scheme = "https"
	}
	path := url.URL{Path: "/" + c.entity + "/messages/" + strconv.FormatUint(uint64(p.SequenceNumber), 10) + "/" + p.LockToken}
	return scheme + "://" + c.Host + path.EscapedPath()
}

const (
	// smallJSON is how large the JSON of a body may be that is not charged beside its message.
	smallJSON = 4 << 10
	// jsonGrowth is how often it is there while it grows.
	jsonGrowth = 2
)

// bodyOf returns the body as bytes: data as it is, text and binary values as
// their content, others in JSON, which is charged. If a value is too large in JSON, the whole
// encoded message is returned instead: nothing is lost, and no JSON is built. Without memory for
// the JSON, ok is false.
func bodyOf(m *message.Message, charge func(int64) bool) (body []byte, ok bool) {
	v, ok := m.Value()
	if !ok {
		for data := range m.Data() {
			body = append(body, data...)
		}
		var lists []codec.Value
		for list := range m.Sequences() {
			lists = append(lists, list)
		}
		if lists == nil {
			return body, true
		}
		v = codec.List(lists...)
	}
	switch v.Kind() {
	case codec.KindString, codec.KindSymbol, codec.KindBinary:
		b, _ := v.Bytes()
		return b, true
	}
	if b, ok := property.Append(nil, v, smallJSON); ok {
		return b, true
	}
	most := max(limits.MessageJSON, 4*m.BodySize())
	if !charge(jsonGrowth * int64(most)) {
		return nil, false
	}
	if b, ok := property.Append(nil, v, most); ok {
		return b, true
	}
	return m.Bytes(), true
}

// token reads the lock in the path. One that cannot be a lock is one that is lost.
func (c *call) token() ([]queue.Token, error) {
	id, ok := property.ParseUUID(c.lock)
	if !ok {
		return nil, broker.ErrLockLost
	}
	return []queue.Token{queue.TokenFrom(id)}, nil
}

// settle completes or unlocks a message.
func (c *call) settle(v broker.Disposition) error {
	tokens, err := c.token()
	if err != nil {
		return err
	}
	o := broker.Outcome{Disposition: v}
	if o.RetryAfter, err = c.retryAfter(); err != nil {
		return err
	}
	if err := c.Broker.Settle(c.Context(), c.entity, tokens, o); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// retryAfter returns how long nobody is to get a message that is unlocked.
func (c *call) retryAfter() (time.Duration, error) {
	text := c.URL.Query().Get("retryAfter")
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.Atoi(text)
	if most := int(broker.LongestRetry / time.Second); err != nil || seconds < 0 || seconds > most {
		return 0, problem.Bad("retryAfter is %q; it is a number of seconds from 0 to %d.", text, most)
	}
	return time.Duration(seconds) * time.Second, nil
}

// renew extends a lock, which survives a restart from now on, and says until when.
func (c *call) renew() error {
	tokens, err := c.token()
	if err != nil {
		return err
	}
	until, err := c.Broker.RenewDurably(c.Context(), c.entity, tokens)
	if err != nil {
		return err
	}
	if len(until) != 1 {
		return fmt.Errorf("rest: renewed one lock, got %d expiry times", len(until))
	}
	b, err := json.Marshal(brokerProperties{LockToken: c.lock, LockedUntil: formatTime(until[0])})
	if err != nil {
		return err
	}
	c.w.Header()[headerProperties] = []string{string(b)}
	c.w.WriteHeader(http.StatusOK)
	return nil
}
