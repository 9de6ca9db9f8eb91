// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
)

// Diff plans the way from have to want.
func Diff(want, have Namespace) Plan {
	d := differ{queues: map[string]entity.Queue{}, topics: map[string]config.Topic{}, hubs: map[string]entity.Hub{}}
	d.plan = Plan{Steps: []Step{}, Unmanaged: []EntityRef{}} // empty, not null, in JSON
	for _, q := range have.Queues {
		d.queues[entity.Key(q.Name)] = q
	}
	for _, t := range have.Topics {
		d.topics[entity.Key(t.Name)] = t
	}
	for _, h := range have.Hubs {
		d.hubs[entity.Key(h.Name)] = h
	}
	for _, q := range want.Queues {
		d.queue(q)
	}
	for _, t := range want.Topics {
		d.topic(t)
	}
	for _, h := range want.Hubs {
		d.hub(h)
	}
	d.leaveQueues(want, have)
	d.leaveTopics(want, have)
	d.leaveHubs(want, have)
	d.blockForwards(want)
	d.plan.Steps = targetsFirst(d.plan.Steps, ends(want, have))
	return d.plan
}

// blockForwards blocks steps that begin to forward to what is neither wanted nor there.
func (d *differ) blockForwards(want Namespace) {
	wanted := map[string]bool{}
	for _, q := range want.Queues {
		wanted[entity.Key(q.Name)] = true
	}
	for _, t := range want.Topics {
		wanted[entity.Key(t.Name)] = true
	}
	problem := func(target string) string {
		p, err := entity.ParsePath(target)
		_, queue := d.queues[entity.Key(p.Entity)]
		_, topic := d.topics[entity.Key(p.Entity)]
		_, hub := d.hubs[entity.Key(p.Entity)]
		switch {
		case err != nil || queue || topic || wanted[entity.Key(p.Entity)]: // errors are others' to find
			return ""
		case hub:
			return fmt.Sprintf("%q is an event hub; only queues and topics can be forwarded to", target)
		}
		return fmt.Sprintf("%q is neither in the file nor in the broker", target)
	}
	for i := range d.plan.Steps {
		s := &d.plan.Steps[i]
		var fs entity.Faults
		for _, c := range s.Changes {
			if (c.Property == "forwardTo" || c.Property == "forwardDeadLetteredMessagesTo") && c.To != "" && !entity.SameTarget(c.From, c.To) {
				if why := problem(c.To); why != "" {
					fs = append(fs, entity.Fault{Field: c.Property, Problem: why})
				}
			}
		}
		if len(fs) > 0 && s.Conflict == nil {
			s.Conflict = fs
		}
	}
}

// ends returns what the queue or topic of a key forwards to when a plan is carried out.
func ends(want, have Namespace) map[string][]string {
	to := map[string][]string{}
	done := map[string]bool{}
	add := func(path, key, target string) {
		if !done[path] && target != "" {
			to[key] = append(to[key], target)
		}
		done[path] = true
	}
	for _, n := range []Namespace{want, have} {
		for _, q := range n.Queues {
			add(entity.Key(q.Name), entity.Key(q.Name), q.ForwardTo)
		}
		for _, t := range n.Topics {
			for _, s := range t.Subscriptions {
				add(entity.Key(entity.SubscriptionPath(t.Name, s.Name)), entity.Key(t.Name), s.ForwardTo)
			}
		}
	}
	return to
}

// differ gathers a plan.
type differ struct {
	queues map[string]entity.Queue // that are there, by key
	topics map[string]config.Topic
	hubs   map[string]entity.Hub
	plan   Plan
}

func (d *differ) add(s Step) { d.plan.Steps = append(d.plan.Steps, s) }

func (d *differ) queue(q entity.Queue) {
	s := Step{Verb: Create, EntityRef: EntityRef{Kind: Queue, Name: q.Name}}
	s.Conflict = d.taken(q.Name, Queue)
	have, found := d.queues[entity.Key(q.Name)]
	if !found {
		s.NewQueue = new(q.WithDefaults())
		s.Changes = changes(entity.Queue{}.WithDefaults(), *s.NewQueue)
		d.add(s)
		return
	}
	have = have.WithDefaults()
	q.Status = cmp.Or(q.Status, have.Status)
	if q.Policy == nil {
		q.Policy = have.Policy
	}
	if q.AuthorizationRules == nil {
		q.AuthorizationRules = have.AuthorizationRules
	}
	q = q.WithDefaults()
	if sameQueue(have, q) {
		return
	}
	s.Verb, s.NewQueue, s.Changes, s.Conflict = Update, &q, changes(have, q), have.CheckUpdate(q)
	d.change(s)
}

// sameQueue reports whether two queues are the same down to the spelling. It is much faster
// than to find out what has changed.
func sameQueue(a, b entity.Queue) bool { return reflect.DeepEqual(a, b) }

// taken reports an entity of another kind that has the name.
func (d *differ) taken(name string, kind Kind) error {
	key := entity.Key(name)
	_, queue := d.queues[key]
	_, topic := d.topics[key]
	_, hub := d.hubs[key]
	switch {
	case queue && kind != Queue:
		return fmt.Errorf("there is a queue of this name")
	case topic && kind != Topic:
		return fmt.Errorf("there is a topic of this name")
	case hub && kind != Hub:
		return fmt.Errorf("there is an event hub of this name")
	}
	return nil
}

// change adds an update if there is something to it.
func (d *differ) change(s Step) {
	if len(s.Changes) > 0 {
		d.add(s)
	}
}

func (d *differ) topic(t config.Topic) {
	s := Step{Verb: Create, EntityRef: EntityRef{Kind: Topic, Name: t.Name}}
	s.Conflict = d.taken(t.Name, Topic)
	have, found := d.topics[entity.Key(t.Name)]
	if !found {
		s.NewTopic = new(t.Topic.WithDefaults())
		s.Changes = changes(entity.Topic{}.WithDefaults(), *s.NewTopic)
		d.add(s)
	} else {
		old := have.Topic.WithDefaults()
		next := t.Topic
		next.Status = cmp.Or(next.Status, old.Status)
		if next.AuthorizationRules == nil {
			next.AuthorizationRules = old.AuthorizationRules
		}
		next = next.WithDefaults()
		s.Verb, s.NewTopic, s.Changes, s.Conflict = Update, &next, changes(old, next), old.CheckUpdate(next)
		d.change(s)
	}
	d.subscriptions(t, have)
}

func (d *differ) subscriptions(t, have config.Topic) {
	there := map[string]entity.Subscription{}
	for _, s := range have.Subscriptions {
		there[entity.Key(s.Name)] = s
	}
	for _, want := range t.Subscriptions {
		s := Step{Verb: Create, EntityRef: EntityRef{Kind: Subscription, Topic: t.Name, Name: want.Name}}
		old, found := there[entity.Key(want.Name)]
		if !found {
			s.NewSubscription = new(want.WithDefaults())
			s.Changes = append(changes(entity.Subscription{}.WithDefaults(), *s.NewSubscription), ruleChanges(s.NewSubscription.InitialRules())...)
			d.add(s)
			continue
		}
		d.subscription(s, want, old.WithDefaults())
	}
}

// subscription compares a subscription that exists, and its rules one by one.
func (d *differ) subscription(s Step, want, old entity.Subscription) {
	next := want
	next.Status = cmp.Or(next.Status, old.Status)
	if next.Policy == nil {
		next.Policy = old.Policy
	}
	next.Rules, next.DefaultRule = nil, nil
	next = next.WithDefaults()
	s.Verb, s.NewSubscription, s.Changes, s.Conflict = Update, &next, changes(old, next), old.CheckUpdate(next)
	d.change(s)
	if want.Rules == nil {
		return
	}
	there := map[string]entity.Rule{}
	for _, r := range old.Rules {
		there[entity.Key(r.Name)] = r
	}
	for _, r := range want.Rules {
		r = r.WithDefaults()
		place := EntityRef{Kind: Rule, Topic: s.Topic, Subscription: s.Name, Name: r.Name}
		have, found := there[entity.Key(r.Name)]
		delete(there, entity.Key(r.Name))
		switch cs := changes(plain(have), plain(r)); {
		case !found:
			d.add(Step{Verb: Create, EntityRef: place, Changes: ruleChanges([]entity.Rule{r}), NewRule: &r})
		case len(cs) > 0:
			d.add(Step{Verb: Update, EntityRef: place, Changes: cs, NewRule: &r})
		}
	}
	for _, r := range old.Rules {
		if _, left := there[entity.Key(r.Name)]; left {
			d.keep(EntityRef{Kind: Rule, Topic: s.Topic, Subscription: s.Name, Name: r.Name})
		}
	}
}

func (d *differ) keep(p EntityRef) { d.plan.Unmanaged = append(d.plan.Unmanaged, p) }

func (d *differ) leaveQueues(want, have Namespace) {
	named := map[string]bool{}
	for _, q := range want.Queues {
		named[entity.Key(q.Name)] = true
	}
	for _, q := range have.Queues {
		if !named[entity.Key(q.Name)] && !ours(q.Name) {
			d.keep(EntityRef{Kind: Queue, Name: q.Name})
		}
	}
}

func (d *differ) leaveTopics(want, have Namespace) {
	named := map[string]bool{}
	for _, t := range want.Topics {
		named[entity.Key(t.Name)] = true
		for _, s := range t.Subscriptions {
			named[entity.Key(entity.SubscriptionPath(t.Name, s.Name))] = true
		}
	}
	for _, t := range have.Topics {
		if ours(t.Name) {
			continue
		}
		if !named[entity.Key(t.Name)] {
			d.keep(EntityRef{Kind: Topic, Name: t.Name}) // with its subscriptions
			continue
		}
		for _, s := range t.Subscriptions {
			if !named[entity.Key(entity.SubscriptionPath(t.Name, s.Name))] {
				d.keep(EntityRef{Kind: Subscription, Topic: t.Name, Name: s.Name})
			}
		}
	}
}

// ours reports whether the broker made the entity itself, such as $alerts.
func ours(name string) bool { return strings.HasPrefix(name, "$") }
