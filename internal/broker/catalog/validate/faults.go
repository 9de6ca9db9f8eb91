// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/policy"
)

// Queue returns everything that is wrong with a queue, its policy included.
func Queue(q entity.Queue) entity.Faults {
	q = q.WithDefaults()
	return append(faultsOf(q.Validate()), Policy(q.Policy)...)
}

// Topic returns everything that is wrong with a topic.
func Topic(t entity.Topic) entity.Faults { return faultsOf(t.WithDefaults().Validate()) }

// Hub returns everything that is wrong with an event hub.
func Hub(h entity.Hub) entity.Faults { return faultsOf(h.WithDefaults().Validate()) }

// Group returns everything that is wrong with a consumer group.
func Group(g entity.ConsumerGroup) entity.Faults { return faultsOf(g.Validate()) }

// Subscription returns everything that is wrong with a subscription, its rules and
// its policy included.
func Subscription(s entity.Subscription) entity.Faults {
	s = s.WithDefaults()
	fs := faultsOf(s.Validate())
	if s.DefaultRule != nil {
		fs = append(fs, sqlFaults("defaultRule.", *s.DefaultRule)...)
	}
	for i, r := range s.Rules {
		if len(fs) >= entity.MaxFaults {
			break
		}
		fs = append(fs, sqlFaults(fmt.Sprintf("rules[%d].", i), r)...)
	}
	return append(fs, Policy(s.Policy)...)
}

// Rule returns everything that is wrong with a rule.
func Rule(r entity.Rule) entity.Faults {
	r = r.WithDefaults()
	return append(faultsOf(r.Validate()), sqlFaults("", r)...)
}

// faultsOf returns the faults that Validate of an entity has found.
func faultsOf(err error) entity.Faults {
	fs, ok := errors.AsType[entity.Faults](err)
	if !ok && err != nil {
		return entity.Faults{{Problem: err.Error()}}
	}
	return fs
}

// sqlFaults finds invalid SQL. Validate finds SQL that is missing or too long, which is not
// compiled: that would take memory.
func sqlFaults(place string, r entity.Rule) entity.Faults {
	var fs entity.Faults
	add := func(field string, err error) {
		if err != nil {
			fs = append(fs, entity.Fault{Field: place + field, Problem: strings.TrimPrefix(err.Error(), "filter: ")})
		}
	}
	fits := func(sql string) bool { return sql != "" && limits.CheckText("SQL", sql, limits.SQL) == nil }
	if r.Filter.Kind == entity.SQLFilter && fits(r.Filter.SQL) {
		_, err := Filter(r.Filter)
		add("filter.sql", err)
	}
	if fits(r.Action.SQL) {
		_, err := NewAction(r.Action)
		add("action.sql", err)
	}
	return fs
}

// Policy returns everything that is wrong with a policy.
func Policy(raw []byte) entity.Faults {
	_, err := policy.Parse(raw)
	found, _ := errors.AsType[policy.Faults](err)
	var fs entity.Faults
	for _, f := range found {
		path := "policy"
		if f.Path != "" {
			path += "." + f.Path
		}
		fs = append(fs, entity.Fault{Field: path, Problem: f.Problem})
	}
	return fs
}
