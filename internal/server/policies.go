// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/policy"
)

// checkPolicies reports every fault of the policies in a configuration, each with
// the place where it was written.
func checkPolicies(cfg config.Config) error {
	var errs []error
	eachPolicy(cfg, func(path string, q entity.Queue) {
		_, err := policy.Parse(q.Policy)
		faults, _ := errors.AsType[policy.Faults](err)
		for _, f := range faults {
			errs = append(errs, cfg.Fault(join(path, f.Path), f.Problem))
		}
	})
	return errors.Join(errs...)
}

// PolicyAdvice tells for each policy of a configuration what is doubtful about it,
// with the place where it was written, and what follows from it.
func PolicyAdvice(cfg config.Config, tell func(name string, doubts, consequences []string)) {
	eachPolicy(cfg, func(path string, q entity.Queue) {
		p, err := policy.Parse(q.Policy)
		if err != nil {
			return // checkPolicies has said so
		}
		lock := q.LockDuration.Std()
		var doubts []string
		for _, w := range p.Warnings(lock) {
			doubts = append(doubts, cfg.Fault(join(path, w.Path), w.Problem).Error())
		}
		tell(q.Name, doubts, p.Consequences(lock))
	})
}

func join(path, below string) string {
	if below == "" {
		return path
	}
	return path + "." + below
}

// eachPolicy runs fn for each queue and subscription that has a policy.
func eachPolicy(cfg config.Config, fn func(path string, q entity.Queue)) {
	for i, q := range cfg.Queues {
		if len(q.Policy) > 0 {
			fn(fmt.Sprintf("queues[%d].policy", i), q.WithDefaults())
		}
	}
	for i, t := range cfg.Topics {
		for j, s := range t.Subscriptions {
			if len(s.Policy) > 0 {
				fn(fmt.Sprintf("topics[%d].subscriptions[%d].policy", i, j), s.WithDefaults().AsQueue(t.Topic.WithDefaults()))
			}
		}
	}
}
