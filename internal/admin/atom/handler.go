// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin/caller"
	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/turns"
)

// Parts is what the handler works with; all of it is required.
type Parts struct {
	Broker    *broker.Broker
	Callers   caller.Authorities
	Log       *slog.Logger
	Namespace string
	Started   time.Time // reported as the creation time of the namespace
	Encrypted func(*http.Request) bool
	// ChargeMemory charges memory until the handler of a request returns, and
	// reports whether there was space for it.
	ChargeMemory func(*http.Request, int64) bool
	// Turns is for requests that take a processor for long.
	Turns *turns.Turns
}

// Handler answers requests of the administration clients.
type Handler struct {
	Parts
	// gatherers is for lists that are in memory as a whole, and for what is large of one entity.
	gatherers *turns.Turns
}

// New returns the handler.
func New(p Parts) *Handler { return &Handler{p, turns.New(gatherers, 1)} }

// contentType is what the service calls its answers.
const contentType = "application/atom+xml;type=entry;charset=utf-8"

// call is one request under way.
type call struct {
	*Handler
	*http.Request
	target
	w     http.ResponseWriter
	grant access.Grant
	out   writer

	begun   bool  // the status and the beginning of the answer were written
	largest int64 // bytes that are charged for the largest part of the answer
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Handler: h, Request: r, w: w}
	status, err := c.serve()
	if err != nil && c.begun {
		return // the answer ends within: its reader notices
	}
	if err != nil {
		status = c.fail(w, err)
	}
	_ = c.flush(status) // the client has left, then
}

// flush writes what there is of the answer.
func (c *call) flush(status int) error {
	if !c.begun {
		c.begun = true
		c.w.Header().Set("Content-Type", contentType)
		c.w.WriteHeader(status)
	}
	_, err := c.w.Write(c.out.Bytes())
	c.out.Reset()
	return err
}

// serve authorizes the request and executes it.
func (c *call) serve() (status int, err error) {
	if c.grant, err = c.Callers.Identify(c.Request); err != nil {
		return 0, err
	}
	if c.target, err = parsePath(c.URL.Path); err != nil {
		return 0, err
	}
	if err := c.absent(); err != nil {
		return 0, err
	}
	if err := caller.Require(c.grant, access.OfRoute(routeID), entity.Key(c.target.path())); err != nil {
		return 0, c.unauthorized(err)
	}
	ctx := broker.By(broker.Guard(c.Context(), c.recheck), c.grant.Account())
	if c.grant.ManagesNamespace() {
		ctx = broker.Managing(ctx)
	}
	c.Request = c.WithContext(ctx)
	switch c.Method {
	case http.MethodGet, http.MethodHead:
		return http.StatusOK, c.get()
	case http.MethodPut:
		return c.put()
	case http.MethodDelete:
		return http.StatusOK, c.remove()
	}
	return 0, problem.Method(http.MethodGet, http.MethodPut, http.MethodDelete)
}

// absent reports a queue, topic or hub that does not exist. The service reports this
// before it checks the right to manage, except for a request that creates one.
// For subscriptions and rules only a caller that may manage their topic is
// told. A caller without a valid key or token for this path is never told.
func (c *call) absent() error {
	if c.entity == "" || c.Method == http.MethodPut || !c.grant.Covers(entity.Key(c.target.path())) || c.grant.Expired(time.Now()) {
		return nil
	}
	if _, err := c.Broker.Queue(c.entity); err == nil {
		return nil
	}
	if _, err := c.Broker.Topic(c.entity); err == nil {
		return nil
	}
	if _, err := c.Broker.Hub(c.entity); err == nil {
		return nil
	}
	return problem.NotFound("No queue, topic or event hub is called '%s'.", c.entity)
}

// recheck reports that the request has lost its right: its body may have taken long to
// come, or it waits behind other changes.
func (c *call) recheck() (err error) {
	c.grant, err = c.Callers.Recheck(c.Request, c.grant, access.OfRoute(routeID), entity.Key(c.target.path()))
	if err != nil {
		return c.unauthorized(err)
	}
	return nil
}

// get answers with an entry or a feed.
func (c *call) get() error {
	switch c.kind {
	case namespaceInfo:
		c.writeNamespace()
		return nil
	case feedQueues, feedTopics, feedSubscriptions, feedRules, feedHubs, feedGroups, feedPartitions:
		return c.feed()
	case kindSubscription:
		return c.writeSubscription()
	case kindRule:
		return c.writeRule()
	case kindGroup:
		return c.writeGroup()
	case kindPartition:
		return c.writePartition()
	}
	if _, err := c.Broker.Queue(c.entity); err == nil {
		return c.writeQueue()
	}
	if _, err := c.Broker.Hub(c.entity); err == nil {
		return c.writeHub()
	}
	if _, err := c.Broker.Topic(c.entity); err != nil {
		return problem.NotFound("No queue, topic or event hub is called '%s'.", c.entity)
	}
	return c.writeTopic()
}

func (c *call) remove() error {
	ctx := c.Context()
	switch c.kind {
	case kindSubscription:
		return c.Broker.DeleteSubscription(ctx, c.entity, c.subscription)
	case kindRule:
		return c.Broker.DeleteRule(ctx, c.entity, c.subscription, c.rule)
	case kindGroup:
		return c.Broker.DeleteConsumerGroup(ctx, c.entity, c.group)
	case kindEntity:
		if _, err := c.Broker.Hub(c.entity); err == nil {
			return c.Broker.DeleteHub(ctx, c.entity)
		}
		if _, err := c.Broker.Topic(c.entity); err == nil {
			return c.Broker.DeleteTopic(ctx, c.entity)
		}
		return c.Broker.DeleteQueue(ctx, c.entity)
	}
	return problem.Method(http.MethodGet)
}

// routeID names all routes of the package in the table of rights.
const routeID = "atom"
