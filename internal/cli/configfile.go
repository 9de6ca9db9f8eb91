// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/filter/value"
	"github.com/triagemq/triagemq/internal/policy"
)

// LoadConfig reads a configuration file and reports every fault in it at once.
func LoadConfig(name string) (config.Config, error) {
	cfg, err := config.Load(name)
	return cfg, Checked(cfg, err)
}

// Checked adds to the faults with which a file was read, if any, those that other packages
// find in what could be read.
func Checked(cfg config.Config, err error) error { return WithFaults(err, check(cfg)) }

// WithFaults adds faults to those of err. Another error stays as it is.
func WithFaults(err error, more config.Faults) error {
	faults, ok := errors.AsType[config.Faults](err)
	if err != nil && !ok {
		return err
	}
	if faults = append(faults, more...); len(faults) == 0 {
		return nil
	}
	return faults
}

// check returns the faults in conditions, actions and policies.
func check(cfg config.Config) config.Faults {
	var fs config.Faults
	for i, q := range cfg.Queues {
		fs = append(fs, policyFaults(cfg, fmt.Sprintf("queues[%d].policy", i), q.Policy)...)
	}
	for i, t := range cfg.Topics {
		for j, s := range t.Subscriptions {
			at := fmt.Sprintf("topics[%d].subscriptions[%d]", i, j)
			fs = append(fs, policyFaults(cfg, at+".policy", s.Policy)...)
			if s.DefaultRule != nil {
				fs = append(fs, ruleFaults(cfg, at+".defaultRule", *s.DefaultRule)...)
			}
			for n, r := range s.Rules {
				fs = append(fs, ruleFaults(cfg, fmt.Sprintf("%s.rules[%d]", at, n), r)...)
			}
		}
	}
	return fs
}

func ruleFaults(cfg config.Config, at string, r entity.Rule) config.Faults {
	var fs config.Faults
	if r.Filter.SQL != "" {
		if _, err := filter.Parse(r.Filter.SQL, parameters(r.Filter.Parameters)); err != nil {
			fs = append(fs, cfg.Fault(at+".filter", sqlProblem(err)))
		}
	}
	if r.Action.SQL != "" {
		a, err := filter.ParseAction(r.Action.SQL, parameters(r.Action.Parameters))
		if err != nil {
			fs = append(fs, cfg.Fault(at+".action", sqlProblem(err)))
		} else if name := a.Reserved(); name != "" {
			fs = append(fs, cfg.Fault(at+".action", name+": only a worker that gives a message back sets this property"))
		}
	}
	return fs
}

// sqlProblem is what is wrong with a text, with its place in it.
func sqlProblem(err error) string { return strings.TrimPrefix(err.Error(), "filter: ") }

// parameters returns constants as the filter language knows them. Their values do
// not matter to a check, only their names.
func parameters(values map[string]entity.Value) filter.Params {
	out := filter.Params{}
	for name, v := range values {
		typed, err := value.ParseTyped(v.Type(), v.String())
		if err == nil {
			out[name] = typed
		}
	}
	return out
}

func policyFaults(cfg config.Config, at string, raw []byte) config.Faults {
	_, err := policy.Parse(raw)
	if err == nil {
		return nil
	}
	found, ok := errors.AsType[policy.Faults](err)
	if !ok {
		return config.Faults{cfg.Fault(at, err.Error())}
	}
	var fs config.Faults
	for _, f := range found {
		fs = append(fs, cfg.Fault(joinPath(at, f.Path), f.Problem))
	}
	return fs
}

func joinPath(at, below string) string {
	if below == "" || below[0] == '[' {
		return at + below
	}
	return at + "." + below
}
