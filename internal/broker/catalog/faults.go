// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/policy"
)

// QueueFaults returns everything that is wrong with a queue, its policy included.
func QueueFaults(q entity.Queue) entity.Faults {
	q = q.WithDefaults()
	return append(faultsOf(q.Validate()), policyFaults(q.Policy)...)
}

// TopicFaults returns everything that is wrong with a topic.
func TopicFaults(t entity.Topic) entity.Faults { return faultsOf(t.WithDefaults().Validate()) }

// SubscriptionFaults returns everything that is wrong with a subscription, its rules and
// its policy included.
func SubscriptionFaults(s entity.Subscription) entity.Faults {
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
	return append(fs, policyFaults(s.Policy)...)
}

// RuleFaults returns everything that is wrong with a rule.
func RuleFaults(r entity.Rule) entity.Faults {
	r = r.WithDefaults()
	return append(faultsOf(r.Validate()), sqlFaults("", r)...)
}

// checkSubscription reports every fault of a subscription if there are several kinds of
// them. Rules and policies have errors of their own for what is wrong with them alone.
func checkSubscription(s entity.Subscription) error {
	if s.Validate() != nil || checkRules(s.InitialRules()) != nil && len(policyFaults(s.Policy)) > 0 {
		return check(SubscriptionFaults(s))
	}
	return nil
}

// check returns the faults of a definition as an error, nil if there is none.
func check(fs entity.Faults) error {
	if len(fs) == 0 {
		return nil
	}
	return Invalid(fs)
}

// faultsOf returns the faults that Validate of an entity has found.
func faultsOf(err error) entity.Faults {
	fs, ok := errors.AsType[entity.Faults](err)
	if !ok && err != nil {
		return entity.Faults{{Problem: err.Error()}}
	}
	return fs
}

// sqlFaults finds invalid SQL. Validate finds SQL that is missing or too long.
func sqlFaults(place string, r entity.Rule) entity.Faults {
	var fs entity.Faults
	add := func(field string, err error) {
		if err != nil {
			fs = append(fs, entity.Fault{Field: place + field, Problem: strings.TrimPrefix(err.Error(), "filter: ")})
		}
	}
	if r.Filter.Kind == entity.SQLFilter && r.Filter.SQL != "" {
		_, err := compileFilter(r.Filter)
		add("filter.sql", err)
	}
	if r.Action.SQL != "" {
		params, err := parameters(r.Action.Parameters)
		if err == nil {
			_, err = filter.ParseAction(r.Action.SQL, params)
		}
		add("action.sql", err)
	}
	return fs
}

func policyFaults(raw []byte) entity.Faults {
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
