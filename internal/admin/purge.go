// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

var purgeQuery = []parameter{
	{"before", "string", "Only messages enqueued before this time, RFC 3339."},
	{"max", "integer", "Maximum number of messages to remove; default all."},
	{"filter", "string", "Only messages for which this condition is true, in the language of subscription rules."},
	{"from", "integer", "The lowest sequence number to examine."},
}

// Removed says how many messages were removed.
type Removed struct {
	Removed int `json:"removed"`
	// Next is the sequence number to continue from, if one request cannot examine
	// everything, as with a filter. It is absent at the end.
	Next queue.SeqNo `json:"next,omitzero"`
}

func purge(c *call, addr string) (any, error) {
	q := c.URL.Query()
	var before time.Time
	if text := q.Get("before"); text != "" {
		var err error
		if before, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, problem.Bad("before is %q, not a time such as 2026-01-31T12:00:00Z.", text)
		}
		if before.IsZero() {
			return Removed{}, nil // to the broker it would mean all
		}
	}
	most, err := c.number("max", 0, 1<<30)
	if err != nil {
		return nil, err
	}
	if most == 0 && q.Get("max") != "" {
		return Removed{}, nil // to the broker it would mean all
	}
	from, err := c.from()
	if err != nil {
		return nil, err
	}
	wanted, err := c.chooser(q.Get("filter"))
	if err != nil {
		return nil, err
	}
	if wanted == nil && from == 0 { // the queue can do it without examining messages
		n, err := c.Broker.DeleteMessages(c.Context(), addr, before, most)
		return Removed{Removed: n}, err
	}
	return purgeChosen(c, addr, from, most, func(d *broker.Delivery, m *message.Message) bool {
		return (before.IsZero() || d.EnqueuedAt.Before(before)) && (wanted == nil || wanted(d, m))
	})
}

// purgeChosen removes up to most of the messages that are wanted; zero is all.
// It examines a bounded number of them, and returns where to continue.
func purgeChosen(c *call, addr string, from queue.SeqNo, most int, wanted func(*broker.Delivery, *message.Message) bool) (any, error) {
	var out Removed
	for looked := 0; looked < limits.Examined; {
		if err := c.recheck(); err != nil {
			return out, err
		}
		ds, err := c.Broker.Peek(c.Context(), addr, from, peekWindow, nil)
		if err != nil || len(ds) == 0 {
			return out, err
		}
		for i := range ds {
			ds[i].Unload() // only one at a time is in memory
		}
		var chosen []queue.SeqNo
		for i := range ds {
			if most > 0 && out.Removed+len(chosen) == most {
				break
			}
			if err := c.Context().Err(); err != nil {
				return out, err // a filter ends with its client
			}
			from = ds[i].Seq + 1
			matched, err := c.matches(&ds[i], wanted)
			if errors.Is(err, broker.ErrMessageNotFound) {
				continue // settled meanwhile
			}
			if err != nil {
				return out, err
			}
			if matched && ds[i].State != queue.Locked {
				chosen = append(chosen, ds[i].Seq)
			}
		}
		n, err := c.Broker.RemoveUnlocked(c.Context(), addr, chosen)
		out.Removed += n
		if err != nil || most > 0 && out.Removed >= most {
			return out, err
		}
		looked += len(ds)
	}
	out.Next = from
	return out, nil
}

// matches reports whether a message is wanted. Its body is charged before it is loaded, and
// not kept.
func (c *call) matches(d *broker.Delivery, wanted func(*broker.Delivery, *message.Message) bool) (matched bool, err error) {
	if err := c.chargeLargest(d.Size()); err != nil {
		return false, err
	}
	defer d.Unload()
	m, err := d.Message()
	if err != nil {
		return false, err
	}
	c.inTurn(func() { matched = wanted(d, m) })
	return matched, nil
}
