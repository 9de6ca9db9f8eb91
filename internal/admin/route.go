// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin/caller"
	"github.com/triagemq/triagemq/internal/admin/cost"
	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/turns"
)

const (
	apiRoot = "/api/v1"
)

// route is one operation of the API, and all that the OpenAPI document says about
// it.
type route struct {
	method  string
	path    string // below apiRoot, in the syntax of http.ServeMux
	id      string // of the operation; it never changes
	summary string
	right   access.Rights // by the table of package access; zero is open to all
	query   []parameter
	body    any // a value of the type that is sent; nil without a body
	result  any // a value of the type that is answered; nil without a body
	status  int // of success; zero is 200
	handle  func(*call) (any, error)
}

// parameter is one in the query.
type parameter struct {
	name, kind, about string // kind is a type of JSON Schema
}

// created is an answer of 201.
type created struct{ value any }

// api serves the table of routes.
type api struct {
	Parts
	started  time.Time
	routes   []route
	mux      *http.ServeMux
	document []byte

	// turns is for bodies that are decoded and messages that are converted into JSON at the same
	// time: half of the processors stay free for senders and receivers.
	turns *turns.Turns
	// gatherers is for lists that are in memory as a whole.
	gatherers *turns.Turns
}

func newAPI(p Parts, started time.Time, working *turns.Turns) *api {
	a := &api{Parts: p, started: started, mux: http.NewServeMux(), turns: working, gatherers: turns.New(gatherers, 1)}
	a.routes = a.table()
	for i := range a.routes {
		rt := &a.routes[i]
		a.mux.HandleFunc(rt.method+" "+apiRoot+rt.path, func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, rt) })
	}
	a.document = a.describe()
	return a
}

// table is every operation there is.
func (a *api) table() []route {
	var rs []route
	rs = append(rs, a.namespaceRoutes()...)
	rs = append(rs, a.queueRoutes()...)
	rs = append(rs, a.topicRoutes()...)
	rs = append(rs, a.subscriptionRoutes()...)
	rs = append(rs, a.ruleRoutes()...)
	rs = append(rs, a.hubRoutes()...)
	rs = append(rs, a.groupRoutes()...)
	rs = append(rs, a.groupActions()...)
	rs = append(rs, a.messageRoutes()...)
	rs = append(rs, a.deadLetterRoutes()...)
	rs = append(rs, a.policyRoutes()...)
	rs = append(rs, a.poolRoutes()...)
	for i := range rs {
		rs[i].right = access.OfRoute(rs[i].id)
	}
	return rs
}

// ServeHTTP finds the route. The error for a path without one is JSON as well.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := a.mux.Handler(r); pattern == "" {
		a.fail(w, r, a.lost(r))
		return
	}
	a.mux.ServeHTTP(w, r)
}

// lost says why a request has no route: its path, or its method.
func (a *api) lost(r *http.Request) error {
	var allow []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := a.mux.Handler(other); pattern != "" {
			allow = append(allow, method)
		}
	}
	if allow == nil {
		return problem.NotFound("No resource at %s; see %s/openapi.json.", r.URL.Path, apiRoot)
	}
	return problem.Method(allow...)
}

// call is one request under way.
type call struct {
	*api
	*http.Request
	w     http.ResponseWriter
	right access.Rights // that the operation takes; zero is none
	grant access.Grant

	largest int64 // bytes that are charged for the largest of what is in memory one after the other
}

func (a *api) serve(w http.ResponseWriter, r *http.Request, rt *route) {
	c := &call{api: a, Request: r, w: w}
	value, err := c.do(rt)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	status := max(rt.status, http.StatusOK)
	if made, ok := value.(created); ok {
		status, value = http.StatusCreated, made.value
	}
	if _, ok := value.(streamed); !ok && value != nil {
		if value, err = c.encode(value); err != nil {
			a.fail(w, r, err)
			return
		}
	}
	answer(w, status, value)
}

// valueCost is how often a value is there: as it is, and as JSON.
const valueCost = 2

// encode makes the JSON of an answer that is not streamed, and charges it. What has changed
// something is answered in any case.
func (c *call) encode(value any) (b json.RawMessage, err error) {
	if raw, ok := value.(json.RawMessage); ok {
		return raw, nil // that is there already
	}
	if sent, ok := value.(Sent); ok {
		b, err = json.Marshal(sent) // senders of small messages do not wait behind large bodies
		return append(b, '\n'), err
	}
	c.inTurn(func() { b, err = json.Marshal(value) })
	if err != nil {
		return nil, err
	}
	if c.Method == http.MethodGet {
		err = c.charge(valueCost * int64(len(b)))
	}
	return append(b, '\n'), err
}

func (c *call) do(rt *route) (any, error) {
	if c.right = rt.right; c.right != 0 {
		var err error
		if c.grant, err = c.Callers.Identify(c.Request); err != nil {
			return nil, err
		}
		if err := caller.Require(c.grant, rt.right, caller.Path(c.address())); err != nil {
			return nil, err
		}
		ctx := broker.By(broker.Guard(c.Context(), c.recheck), c.grant.Account())
		if c.grant.ManagesNamespace() {
			ctx = broker.Managing(ctx)
		}
		c.Request = c.WithContext(broker.Charging(ctx, c.chargeLargest))
	}
	return rt.handle(c)
}

// recheck reports that the request has lost its right: its body may have taken long to
// come, it waits behind other changes, or its client is slow to read.
func (c *call) recheck() (err error) {
	if c.right != 0 {
		c.grant, err = c.Callers.Recheck(c.Request, c.grant, c.right, caller.Path(c.address()))
	}
	return err
}

// address is the entity that the path names, or the query for the pools at one source; empty
// is the namespace.
func (c *call) address() string {
	if c.PathValue("pool") != "" {
		return c.URL.Query().Get("source")
	}
	if q := cmp.Or(c.PathValue("queue"), c.PathValue("hub")); q != "" {
		return q
	}
	t, s := c.PathValue("topic"), c.PathValue("subscription")
	if t == "" || s == "" {
		return t
	}
	return entity.SubscriptionPath(t, s)
}

func answer(w http.ResponseWriter, status int, value any) {
	if value == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if raw, ok := value.(json.RawMessage); ok {
		_, _ = w.Write(raw) // the client has left, then
		return
	}
	if s, ok := value.(streamed); ok {
		_ = s.stream(w)
		return
	}
	_ = json.NewEncoder(w).Encode(value)
}

// failure is the JSON of an error.
type failure struct {
	Error failed `json:"error"`
}

type failed struct {
	Code    string           `json:"code"`
	Message string           `json:"message"`
	Details []problem.Detail `json:"details,omitempty"`
}

func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	p, planned := problem.Of(err)
	if !planned && r.Context().Err() == nil { // else the client has left
		a.Log.Error("unexpected error of an API request", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="triagemq"`)
	}
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(p.RetryAfter)+1))
	}
	answer(w, p.Status, failure{failed{p.Code, p.Message, p.Details}})
}

// decode reads the body into to, which must know every field of it.
func (c *call) decode(to any, limit int64) error {
	body, err := c.read(limit)
	if err != nil {
		return err
	}
	return c.unmarshal(body, to)
}

// unmarshal decodes JSON into to when what it becomes is charged to the request.
func (c *call) unmarshal(body []byte, to any) error {
	var faults entity.Faults
	malformed := false
	err := c.converting(len(body), func() error {
		n, err := cost.JSON(body, reflect.TypeOf(to).Elem())
		if err != nil {
			return err
		}
		if err := c.charge(n); err != nil {
			return err
		}
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		switch err = d.Decode(to); {
		case err == nil && d.More():
			return problem.Bad("There is something after the end of the JSON.")
		case err == nil:
			return c.chargePolicy(to)
		}
		if err := c.charge(n); err != nil { // it is read again, to find all faults
			return err
		}
		malformed = true
		if len(body) <= limits.Body {
			faults, _ = entity.DecodeJSON(body, to, entity.RefuseUnknown)
		}
		return err
	})
	if malformed {
		return c.faulty(faults, to, err)
	}
	return err
}

// converting converts a text of so many bytes into values, or the other way, in a turn if it takes
// long. It ends when the client leaves while it waits.
func (c *call) converting(size int, work func() error) error {
	if size > cost.Quick {
		leave, err := c.turns.Take(c.Context(), c.grant.Account())
		if err != nil {
			return err
		}
		defer leave()
	}
	return work()
}

// charge charges n bytes to the request until its answer is made.
func (c *call) charge(n int64) error {
	if !c.ChargeMemory(c.Request, n) {
		return problem.Busy()
	}
	return nil
}

// chargeLargest charges what is in memory one after the other, such as bodies of messages: what
// n bytes are more than the largest before.
func (c *call) chargeLargest(n int64) error {
	if n <= c.largest {
		return nil
	}
	if err := c.charge(n - c.largest); err != nil {
		return err
	}
	c.largest = n
	return nil
}

// chargePolicy charges what the policy of a definition becomes when it is read.
func (c *call) chargePolicy(definition any) error {
	switch d := definition.(type) {
	case *entity.Queue:
		return c.chargeTree(d.Policy)
	case *entity.Subscription:
		return c.chargeTree(d.Policy)
	}
	return nil
}

// chargeTree charges what JSON becomes that is read as a tree of values.
func (c *call) chargeTree(text []byte) error {
	n, err := cost.JSON(text, reflect.TypeFor[any]())
	if err != nil {
		return err
	}
	return c.charge(n)
}

// read reads the body. After that it checks the rights of the caller again.
func (c *call) read(limit int64) ([]byte, error) {
	body, err := problem.ReadBody(c.w, c.Request, limit)
	if err != nil {
		return nil, err
	}
	return body, c.recheck()
}

// faulty returns all faults of a body that could not be read: the fields that
// are unknown or of another type, which are known, and the faults of the rest. For a body that
// is larger than a definition, which contains messages, none are known, and it returns only the
// first fault: to examine all of it would need its memory again.
func (c *call) faulty(faults entity.Faults, to any, err error) error {
	if len(faults) == 0 { // or it is not JSON
		return problem.Bad("Invalid request body: %s.", strings.TrimPrefix(err.Error(), "json: "))
	}
	unread := len(faults)
	var rest entity.Faults
	if err := c.Broker.Compiling(c.Context(), func() error { rest = definitionFaults(to, c.PathValue); return nil }); err != nil {
		return err
	}
	for _, f := range rest {
		told := slices.ContainsFunc(faults[:unread], func(u entity.Fault) bool { return within(f.Field, u.Field) || within(u.Field, f.Field) })
		if !told {
			faults = append(faults, f)
		}
	}
	p := problem.Bad("Invalid request body: %s.", strings.ReplaceAll(faults.Error(), "\n", "; "))
	for _, f := range faults {
		p.Details = append(p.Details, problem.Detail{Field: f.Field, Problem: f.Problem})
	}
	return p
}

// within reports whether a field is another, or part of it.
func within(field, whole string) bool {
	rest, ok := strings.CutPrefix(field, whole)
	return ok && whole != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// definitionFaults returns what is wrong with a definition, if it is one.
func definitionFaults(v any, path func(string) string) entity.Faults {
	switch d := v.(type) {
	case *entity.Queue:
		d.Name = cmp.Or(d.Name, path("queue"))
		return broker.QueueFaults(*d)
	case *entity.Topic:
		d.Name = cmp.Or(d.Name, path("topic"))
		return broker.TopicFaults(*d)
	case *entity.Subscription:
		d.Name = cmp.Or(d.Name, path("subscription"))
		return broker.SubscriptionFaults(*d)
	case *entity.Rule:
		d.Name = cmp.Or(d.Name, path("rule"))
		return broker.RuleFaults(*d)
	case *entity.Hub:
		d.Name = cmp.Or(d.Name, path("hub"))
		return broker.HubFaults(*d)
	case *entity.ConsumerGroup:
		d.Name = cmp.Or(d.Name, path("group"))
		return broker.GroupFaults(*d)
	}
	return nil
}

// merge applies the fields of a patch to a value [RFC 7396]. A null is kept,
// because it differs from an absent field: a null policy removes the policy, an
// absent one keeps it. For all other fields null is the default. The old value, as JSON, is
// charged like the patch.
//
// The value has to exist before the patch is read, and is looked up again after that: a patch
// may take long to come, and is not to hold a value that was replaced meanwhile.
func merge[T any](c *call, lookup func() (T, error)) (old, next T, err error) {
	if _, err := lookup(); err != nil {
		return old, next, err
	}
	var fields, patch map[string]json.RawMessage
	if err := c.decode(&patch, limits.Body); err != nil {
		return old, next, err
	}
	if old, err = lookup(); err != nil {
		return old, next, err
	}
	var b []byte
	c.inTurn(func() { b, err = json.Marshal(old) })
	if err != nil {
		return old, next, err
	}
	if err := c.unmarshal(b, &fields); err != nil {
		return old, next, err
	}
	maps.Copy(fields, patch)
	if c.inTurn(func() { b, err = json.Marshal(fields) }); err != nil {
		return old, next, err
	}
	err = c.unmarshal(b, &next)
	return old, next, err
}

// number reads a number from the query.
func (c *call) number(name string, otherwise, most int) (int, error) {
	text := c.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, problem.Bad("%s is %q; it must be an integer from 0 to %d.", name, text, most)
	}
	return n, nil
}
