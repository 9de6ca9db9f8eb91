// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"slices"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin/cost"
	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/admin/property"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
)

const (
	typeBatch   = "application/vnd.microsoft.servicebus.json"
	maxMessages = limits.SentByHTTP
)

// send stores one message, or a batch as a whole.
func (c *call) send() error {
	to, err := c.Broker.OpenSender(c.entity, broker.SenderOptions{Key: c.grant.Holder(), Unsynced: c.Unsynced(c.Request)})
	if err != nil {
		return err
	}
	defer to.Close()
	kind, _, _ := mime.ParseMediaType(c.Header.Get("Content-Type")) // anything may be sent
	limit := to.MaxMessageSize()
	if kind == typeBatch {
		limit = max(limit, limits.BatchByHTTP)
	}
	body, err := problem.ReadBody(c.w, c.Request, limit)
	if err != nil {
		return err
	}
	if err := c.recheck(access.OfRoute(sending)); err != nil { // the body may have taken long to come
		return err
	}
	var batch []*message.Message
	if kind == typeBatch {
		batch, err = c.readBatch(body)
	} else {
		batch, err = c.readOne(body)
	}
	if err != nil {
		return err
	}
	if err := Store(c.Context(), to, batch, c.Unsynced(c.Request)); err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/xml; charset=utf-8")
	c.w.WriteHeader(http.StatusCreated)
	return nil
}

// Store sends a batch and returns when it is durable, or ctx has ended. Its
// memory is charged to unsynced until it is durable. If there is no space it is
// rejected with broker.ErrBusy and does not wait: its memory is allocated
// already.
func Store(ctx context.Context, to *broker.Sender, batch []*message.Message, unsynced *budget.Account) error {
	size := 0
	for _, m := range batch {
		size += m.Size()
	}
	charge := broker.Unsynced(size, len(batch))
	if !unsynced.TryTake(charge) {
		return fmt.Errorf("%w: too much waits for the disk; try again later", broker.ErrBusy)
	}
	done := make(chan error, 1)
	to.Send(batch, func(err error) {
		unsynced.Release(charge)
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done(): // the client has left, or the broker stops
		return ctx.Err()
	}
}

func (c *call) readOne(body []byte) ([]*message.Message, error) {
	d := message.Draft{Body: body, ContentType: c.Header.Get("Content-Type"), ContentEncoding: c.Header.Get("Content-Encoding")}
	if text := c.Header.Get(headerProperties); text != "" {
		var p brokerProperties
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return nil, problem.Bad("The header %s: %v.", headerProperties, err)
		}
		if err := p.fill(&d); err != nil {
			return nil, err
		}
	}
	var err error
	if d.Application, err = fromHeaders(c.Header); err != nil {
		return nil, err
	}
	return []*message.Message{d.Message()}, nil
}

// batched is a message of a batch.
type batched struct {
	Body             string
	BrokerProperties brokerProperties
	UserProperties   map[string]json.RawMessage
}

// readBatch reads the messages of a batch. They are counted, and what they become is charged
// to the request, before any is decoded.
func (c *call) readBatch(body []byte) ([]*message.Message, error) {
	if len(body) > cost.Quick {
		leave, err := c.Turns.Take(c.Context(), c.grant.Account())
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	if n := cost.Elements(body); n > maxMessages {
		return nil, badCount(n)
	}
	n, err := cost.JSON(body, reflect.TypeFor[[]batched]())
	if err != nil {
		return nil, err
	}
	if !c.ChargeMemory(c.Request, n) {
		return nil, problem.Busy()
	}
	var items []batched
	if err := json.Unmarshal(body, &items); err != nil {
		return nil, problem.Bad("The batch: %v.", err)
	}
	if len(items) == 0 {
		return nil, badCount(0)
	}
	var batch []*message.Message
	for i, item := range items {
		d := message.Draft{Body: []byte(item.Body)}
		if err := item.BrokerProperties.fill(&d); err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(item.UserProperties)) {
			v, err := property.Parse(item.UserProperties[name])
			if err != nil {
				return nil, problem.Bad("Message %d of the batch, property %q: %v.", i, name, err)
			}
			d.Application = append(d.Application, message.Pair{Name: name, Value: v})
		}
		batch = append(batch, d.Message())
	}
	return batch, nil
}

func badCount(n int) error {
	return problem.Bad("The batch has %d messages; it may have 1 to %d.", n, maxMessages)
}
