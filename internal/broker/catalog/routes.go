// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker/catalog/errtext"
	"github.com/triagemq/triagemq/internal/broker/catalog/validate"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// routes are the rules of a topic's subscriptions, compiled. They are immutable: a change
// of a rule creates new ones, effective for the next message.
type routes struct {
	set   *filter.RuleSet
	rules []route
	subs  []*Entity
	spare sync.Pool // of *filter.Envelope
}

// view returns a message as rules see it, to be returned with done.
func (rt *routes) view(m *message.Message, now time.Time) *filter.Envelope {
	e, ok := rt.spare.Get().(*filter.Envelope)
	if !ok {
		e = &filter.Envelope{IDs: newID}
	}
	e.Message, e.BrokerProperties.EnqueuedTime = m, now
	return e
}

// done recycles a view and releases its message.
func (rt *routes) done(e *filter.Envelope) {
	e.Forget()
	rt.spare.Put(e)
}

// route is one rule.
type route struct {
	sub    int // index into routes.subs
	name   string
	filter filter.Filter
	action *filter.Action // nil if it has none
}

// ruleNameProperty is the property with the name of the rule whose action changed a copy.
const ruleNameProperty = "RuleName"

// The reasons of dead letters that routing sets.
const (
	reasonNoSession = "Session ID is null."
	reasonNames     = "Name is too long."
	reasonSize      = "Copy is too large."
	reasonFilter    = "FilterEvaluationException"
)

// newRoutes returns the routes to subscriptions, whose rules are compiled.
func newRoutes(subs []*Entity) *routes {
	rt := &routes{subs: subs}
	var filters []filter.Filter
	for i, n := range subs {
		for _, rule := range n.Definition().rules {
			filters = append(filters, rule.filter)
			rt.rules = append(rt.rules, route{sub: i, name: rule.from.Name, filter: rule.filter, action: rule.action})
		}
	}
	rt.set = filter.Compile(filters)
	return rt
}

// compiledRule is a rule of a subscription.
type compiledRule struct {
	from   entity.Rule // what it was compiled from
	filter filter.Filter
	action *filter.Action // nil if it has none
}

// deriveRules compiles the rules of a subscription. Unchanged rules, usually all but one,
// are taken from before: compiling all of them for each change would take seconds. A mebibyte of
// them can become two hundred, so it ends when they take more than available bytes.
func (d *Definition) deriveRules(before *Definition, available int64) error {
	var was []compiledRule
	size := int64(0)
	if before != nil {
		was = before.rules
	}
	d.rules = make([]compiledRule, 0, len(d.Subscription.Rules))
	for _, r := range d.Subscription.Rules {
		cr := compiledRule{from: r}
		// In order, with some added and some removed.
		at := slices.IndexFunc(was, func(c compiledRule) bool { return c.from.Name == r.Name })
		if at >= 0 && sameRule(&was[at].from, &r) {
			cr.filter, cr.action = was[at].filter, was[at].action
		} else {
			var err error
			if cr.filter, cr.action, err = compileRule(r); err != nil {
				return fmt.Errorf("rule %q: %w", r.Name, err)
			}
		}
		if at >= 0 {
			was = was[at+1:]
		}
		d.rules = append(d.rules, cr)
		if size += cr.cost(); size > available {
			return &shortError{size}
		}
	}
	return nil
}

// sameRule reports whether two rules mean the same.
func sameRule(a, b *entity.Rule) bool {
	if a.Filter.SQL != b.Filter.SQL || a.Filter.Kind != b.Filter.Kind || a.Action.SQL != b.Action.SQL {
		return false
	}
	if a.Filter.Correlation == b.Filter.Correlation && len(a.Filter.Parameters)+len(b.Filter.Parameters)+
		len(a.Action.Parameters)+len(b.Action.Parameters) == 0 {
		return true // the usual case
	}
	return reflect.DeepEqual(a.Filter, b.Filter) && reflect.DeepEqual(a.Action, b.Action)
}

// compileRule compiles one rule, or returns what is wrong with it.
func compileRule(r entity.Rule) (filter.Filter, *filter.Action, error) {
	f, err := validate.Filter(r.Filter)
	if err != nil || r.Action.SQL == "" {
		return f, nil, Invalid(err)
	}
	action, err := validate.Action(r.Action)
	return f, action, Invalid(err)
}

// reroute makes the rules of a topic's subscriptions effective. It is called within Change.
func (c *Catalog) reroute(topic *Entity) {
	topic.routes.Store(newRoutes(c.SubscriptionsOf(topic)))
}

// route adds the copies of message i to a request: one for each subscription with a
// matching rule, and one for each matching rule that has an action. The bytes that actions
// add are counted.
func (c *Catalog) route(topic *Entity, p *sendRequest, i int, now time.Time, o *SendOptions) {
	rt, send := topic.routes.Load(), &p.Send
	view := rt.view(send.Bodies[i], now)
	defer rt.done(view)
	w := routing{send: send, out: &p.out, source: i, hops: o.Hops, origin: o.Origin, actions: filter.MessageSteps}
	served := w.words[:]
	if n := len(rt.subs)/64 + 1; n > len(served) {
		served = make([]uint64, n)
	}
	send.Topic = topic.ID
	send.Published++
	steps := rt.set.Match(view, func(rule int, err error) {
		ro := &rt.rules[rule]
		sub := rt.subs[ro.sub]
		word, bit := ro.sub/64, uint64(1)<<(ro.sub%64)
		switch {
		case err != nil:
			if *sub.Definition().Subscription.DeadLetteringOnFilterEvaluationExceptions && !w.failedAgain(sub) {
				w.dead(sub, reasonFilter, fmt.Sprintf("rule %q: %s", ro.name, errtext.Text(err)))
			}
		case ro.action != nil:
			w.shaped(sub, ro, view)
		case served[word]&bit == 0:
			served[word] |= bit
			w.add(sub, queueserver.Main, w.source)
		}
	})
	steps += filter.MessageSteps - w.actions
	p.out.steps += steps
	topic.effort.note(steps + w.policies)
	w.deadLetter()
}

// routing is the routing of one message to subscriptions.
type routing struct {
	send   *queueserver.Send
	out    *fanOut
	source int // of send.Bodies
	hops   uint8
	origin queue.SeqNo // sequence number of a forwarded message; zero is that in the topic
	words  [16]uint64  // a bit for each of the first 1,024 subscriptions

	policies int // about how many steps the expensive policies of subscriptions take
	actions  int // steps that are left for the actions of rules

	failures []failure       // at most one for each subscription
	failed   map[*Entity]int // index in failures; nil without any
}

// failure is why a subscription cannot accept a message.
type failure struct {
	sub                 *Entity
	reason, description string
	more                int // rules that failed as well
}

// add adds a copy for a subscription. In a subscription with sessions a message without
// one becomes a dead letter.
func (w *routing) add(sub *Entity, part queueserver.SubQueue, body int) {
	def := sub.Definition()
	a, steps := def.arrival(w.send.Bodies[body], w.hops)
	w.out.steps += steps
	if steps >= muchEffort {
		w.policies += steps
	}
	if part == queueserver.Main && def.Properties.RequiresSession && !a.InSession {
		w.dead(sub, reasonNoSession, "")
		return
	}
	if err := checkNames(&a); err != nil { // a rule or the subscription's policy set the names
		if part == queueserver.Main {
			w.dead(sub, reasonNames, errtext.Text(err))
			return
		}
		a.Session, a.InSession, a.Key = "", false, ""
	}
	a.NotBefore = time.Time{} // the topic has delayed it already
	a.Origin = cmp.Or(w.origin, queue.SeqNo(w.source+1))
	w.send.Copies = append(w.send.Copies, queueserver.Copy{ID: sub.ID, SubQueue: part, Body: body, Arrival: a, Numbered: w.origin != 0, Revision: def.PolicyRevision})
}

// shaped adds the copy that a rule's action makes for a subscription.
func (w *routing) shaped(sub *Entity, ro *route, view *filter.Envelope) {
	source := w.send.Bodies[w.source]
	if len(w.send.Copies) >= limits.Copies || !w.out.allow(source.Size()) {
		w.dead(sub, reasonSize, "the actions of rules make more copies of it than one operation may store")
		return
	}
	changes, err := ro.action.ApplyWithin(view, &w.actions)
	switch {
	case err == nil:
	case w.failedAgain(sub):
		return
	default:
		w.dead(sub, reasonFilter, fmt.Sprintf("action of rule %q: %s", ro.name, errtext.Text(err)))
		return
	}
	e := filter.Edit(view.Message, changes)
	e.Properties = append(e.Properties, message.Change{Name: ruleNameProperty, Value: codec.String(ro.name)})
	made := Edited(source, e)
	if err := made.CheckLimits(); err != nil && source.CheckLimits() == nil {
		w.dead(sub, reasonSize, fmt.Sprintf("action of rule %q: %s", ro.name, errtext.Text(err)))
		return
	}
	w.send.Bodies = append(w.send.Bodies, made)
	w.add(sub, queueserver.Main, len(w.send.Bodies)-1)
}

// failedAgain reports whether the message becomes a dead letter of a subscription already, and
// counts one more reason for that.
func (w *routing) failedAgain(sub *Entity) bool {
	at, again := w.failed[sub]
	if again {
		w.failures[at].more++
	}
	return again
}

// failureSteps is about how many steps it takes to describe why a subscription cannot accept a
// message.
const failureSteps = 200

// dead records that the message becomes a dead letter of a subscription: once, whatever
// else fails there.
func (w *routing) dead(sub *Entity, reason, description string) {
	if w.failedAgain(sub) {
		return
	}
	w.out.steps += failureSteps
	if w.failed == nil {
		w.failed = make(map[*Entity]int)
	}
	w.failed[sub] = len(w.failures)
	w.failures = append(w.failures, failure{sub: sub, reason: reason, description: description})
}

// deadLetter adds the message to the dead letters of the subscriptions that cannot accept
// it. Those with the same reason share one body, and so do those whose reason exceeds the
// limit of added bytes.
func (w *routing) deadLetter() {
	if w.failures == nil {
		return
	}
	bodies := make(map[[2]string]int)
	for _, f := range w.failures {
		if f.more > 0 {
			f.description = strings.TrimSpace(fmt.Sprintf("%s (and %d more)", f.description, f.more))
		}
		why := [2]string{f.reason, f.description}
		body, known := bodies[why]
		if !known && len(bodies) > 0 && !w.out.allow(w.send.Bodies[w.source].Size()) {
			f.description = ""
			why = [2]string{f.reason, ""}
			body, known = bodies[why]
		}
		if !known {
			body = len(w.send.Bodies)
			bodies[why] = body
			w.send.Bodies = append(w.send.Bodies, Edited(w.send.Bodies[w.source], DeadLetterEdit(f.reason, f.description)))
		}
		w.add(f.sub, queueserver.DeadLetter, body)
	}
}

// DeadLetterEdit writes into a message why it is a dead letter.
func DeadLetterEdit(reason, description string) message.Edit {
	e := message.Edit{Properties: []message.Change{{Name: "DeadLetterReason", Value: codec.String(reason)}}}
	if description != "" {
		e.Properties = append(e.Properties, message.Change{Name: "DeadLetterErrorDescription", Value: codec.String(description)})
	}
	return e
}

func newID() (id [16]byte) {
	rand.Read(id[:]) // never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}
