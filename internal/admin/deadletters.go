// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/http"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/queue"
)

// Redrive says which dead letters to move back to their queue.
type Redrive struct {
	// To is a queue or topic; empty is the entity in which they were dead-lettered.
	To string `json:"to,omitzero"`
	// Filter chooses among them, in the language of subscription rules; empty
	// takes all.
	Filter string `json:"filter,omitzero"`
	// From is the lowest sequence number to examine.
	From queue.SeqNo `json:"from,omitzero"`
	// Until is the highest sequence number to examine; zero is the highest one at
	// the time of the request. To continue after Max, use the value of the answer.
	Until queue.SeqNo `json:"until,omitzero"`
	// Max is how many to move at most; zero is all.
	Max int `json:"max,omitzero"`
}

func (a *api) deadLetterRoutes() []route {
	var rs []route
	for _, at := range []struct{ path, noun string }{
		{"/queues/{queue}/deadletters", "Queue"},
		{"/topics/{topic}/subscriptions/{subscription}/deadletters", "Subscription"},
		{"/topics/{topic}/deadletters", "Topic"},
	} {
		rs = append(rs, route{
			method: http.MethodPost, path: at.path + "/redrive", id: "redrive" + at.noun + "DeadLetters",
			summary: "Move dead letters back to their entity, or to another one. Each message is moved completely or stays.",
			query:   deadLetterQuery,
			body:    Redrive{}, result: broker.Redriven{}, handle: redrive,
		})
	}
	return rs
}

func redrive(c *call) (any, error) {
	var r Redrive
	if c.ContentLength != 0 { // a body is not needed to move everything
		if err := c.decode(&r, limits.Body); err != nil {
			return nil, err
		}
	}
	if err := c.mayForward(r.To); err != nil {
		return nil, err
	}
	match, err := c.chooser(r.Filter)
	if err != nil {
		return nil, err
	}
	return c.Broker.Redrive(c.Context(), deadLetters(c), broker.Redrive{To: r.To, From: r.From, Until: r.Until, Max: max(r.Max, 0), Match: match})
}
