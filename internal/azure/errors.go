// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
)

// ErrNoMemory is reported to a peer whose memory has reached its limit.
var ErrNoMemory = endpoint.Errorf(endpoint.CondResourceLimitExceeded,
	"This connection, its key or the broker holds too much memory already. Try again later.")

// errTooManyConnections is reported to a peer whose key has too many connections.
var errTooManyConnections = endpoint.Errorf(endpoint.CondResourceLimitExceeded,
	"This key, or this entity, has as many connections as are left for all others. Close some, or try again later.")

// errGone is why what a connection has under way ends with it.
var errGone = errors.New("azure: connection is gone")

// errReplaced means that an entity was deleted and another has its name now. It is
// a broker.ErrNotFound.
var errReplaced = fmt.Errorf("%w: it was deleted, and created anew", broker.ErrNotFound)

// conditions are those of errors that are raised here.
var conditions = []condition.Condition{
	{Err: errGone, Name: names.OperationCancelled, Status: condition.StatusUnavailable, Text: "The operation was cancelled."}, // no peer gets it
}

// newTable returns the conditions of all personalities.
func newTable(ps []Personality) *condition.Table {
	own := [][]condition.Condition{conditions}
	for _, p := range ps {
		own = append(own, p.Conditions())
	}
	return condition.NewTable(own...)
}

// failureOf translates err, which happened to the entity at addr. An error without
// a condition is logged.
func (c *Conn) failureOf(addr string, err error) condition.Failure {
	f, planned := c.svc.conditions.Failure(err, func() string { return wire.URL(c.host, addr) })
	if !planned {
		c.log.Error("unexpected error", "entity", addr, "err", err)
	}
	return f
}

// WireError translates err, which happened to the entity at addr, for a link.
func (c *Conn) WireError(addr string, err error) *endpoint.Error { return c.failureOf(addr, err).Error }
